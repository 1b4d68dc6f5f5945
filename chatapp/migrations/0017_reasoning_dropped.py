from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0016_masks'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='reasoning_dropped_through',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
    ]
