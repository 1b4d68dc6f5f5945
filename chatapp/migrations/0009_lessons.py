"""What refusals taught of models gets a place of its own, with dates and an end.

Until now one refusal was believed for ever, in place of what the server said. Such a figure goes on
trial: the server's next list brings its own word back, and only another refusal ends that.
"""

from django.db import migrations, models

FIELDS = (
    ("window", 8192),
    ("supports_tools", True),
    ("supports_system_role", True),
    ("supports_json_schema", True),
    ("supports_usage", True),
)


def put_on_trial(apps, schema_editor):
    for row in apps.get_model("chatapp", "ModelProfile").objects.all():
        learned = [field for field, source in row.sources.items() if source == "learned"]
        if not learned:
            continue
        when = row.updated_at.isoformat()
        for field, default in FIELDS:
            if field in learned:
                row.learned[field] = {
                    "value": getattr(row, field),
                    "first": when,
                    "last": when,
                    "confirmed": False,
                }
                setattr(row, field, default)
        row.sources = {
            field: "default" if field in learned else source
            for field, source in row.sources.items()
        }
        row.save()


class Migration(migrations.Migration):

    dependencies = [
        ("chatapp", "0008_daily_use"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelprofile",
            name="dates",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="modelprofile",
            name="learned",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="modelprofile",
            name="longest_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="modelprofile",
            name="longest_prompt",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.RunPython(put_on_trial, migrations.RunPython.noop),
    ]
