import itertools
import re
import unicodedata

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


def shorten_slugs(apps, schema_editor):
    """Slugs of before may be longer, and have other letters, than they may have now."""
    projects = apps.get_model('chatapp', 'Project').objects.using(schema_editor.connection.alias)
    rows = list(projects.order_by('pk'))
    taken = {(row.owner_id, row.slug) for row in rows}
    for row in rows:
        if re.fullmatch(r'[a-z0-9_]{1,50}', row.slug) and row.slug != 'default':
            continue
        plain = unicodedata.normalize('NFKD', row.slug).encode('ascii', 'ignore').decode().lower()
        begun = re.sub(r'[^a-z0-9_]+', '_', plain)[:30]
        row.slug = next(
            slug
            for number in itertools.count(row.pk)
            if (row.owner_id, slug := f'{begun}_{number}') not in taken
        )
        taken.add((row.owner_id, row.slug))
        row.save(update_fields=['slug'])


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0020_activity_log'),
    ]

    operations = [
        migrations.RunPython(shorten_slugs, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='project',
            name='slug',
            field=models.SlugField(),
        ),
        migrations.AddField(
            model_name='project',
            name='archived_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='project',
            name='colour',
            field=models.CharField(blank=True, default='', max_length=16),
        ),
        migrations.AddField(
            model_name='project',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, default=django.utils.timezone.now),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='project',
            name='default_model',
            field=models.CharField(blank=True, default='', max_length=200),
        ),
        migrations.AddField(
            model_name='project',
            name='instructions',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.AddField(
            model_name='project',
            name='lines',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='project',
            name='lines_version',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.CreateModel(
            name='ProjectVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('content_of', models.PositiveIntegerField()),
                ('before', models.PositiveIntegerField()),
                ('lines', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='chatapp.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'version'), name='project_version_once')],
            },
        ),
    ]
