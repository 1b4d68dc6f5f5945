from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0018_previews'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='answer_tokens',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='reasoning_effort',
            field=models.CharField(blank=True, max_length=16, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='temperature',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='importjob',
            name='undone_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='modelprofile',
            name='supports_reasoning_effort',
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name='modelprofile',
            name='supports_temperature',
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name='usersettings',
            name='instructions',
            field=models.TextField(blank=True, default=''),
        ),
    ]
