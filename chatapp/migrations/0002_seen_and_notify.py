"""What a person has seen of a conversation, and whether they want to be told of replies."""

from django.db import migrations, models
from django.db.models import F


def all_seen(apps, schema_editor):
    """What there is by now counts as seen."""
    apps.get_model("chatapp", "Conversation").objects.update(seen_event_no=F("event_no"))


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="seen_event_no",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="usersettings",
            name="notify",
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(all_seen, migrations.RunPython.noop),
    ]
