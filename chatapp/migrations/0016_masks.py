from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0015_tools'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='mask_batch',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='unmasked_tokens',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('mask_batch__isnull', False)), fields=['conversation', 'mask_batch'], name='message_masked'),
        ),
    ]
