from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0012_retry_notice'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='reasoning_field',
            field=models.CharField(blank=True, max_length=32, null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='reasoning_tokens',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='seconds',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='modelprofile',
            name='reasoning_back',
            field=models.CharField(
                choices=[
                    ('never', 'never'),
                    ('tool_turns', 'in tool turns'),
                    ('always', 'always'),
                ],
                default='tool_turns',
                max_length=16,
            ),
        ),
    ]
