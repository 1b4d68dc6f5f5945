"""Shared links; and the numbers of conversations that continue one another."""

import django.db.models.deletion
from django.db import migrations, models


def number_parts(apps, schema_editor):
    """Number the continuations that there are: each is one more than what it continues.

    A branch keeps the number of the conversation that it branched off. Whatever a conversation was
    made from has a lower id, so its number is known.
    """
    rows = apps.get_model("chatapp", "Conversation").objects.using(schema_editor.connection.alias)
    known = {}
    made = rows.filter(continued_from__isnull=False).order_by("pk")
    for pk, branched, continued in made.values_list("pk", "branched_from", "continued_from"):
        part, first = known.get(branched or continued, (1, continued))
        if branched not in known:
            part += 1
        known[pk] = part, first
        rows.filter(pk=pk).update(part=part, first_part=first)


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0022_connections'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='first_part',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='later_parts', to='chatapp.conversation'),
        ),
        migrations.AddField(
            model_name='conversation',
            name='part',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='Share',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_sha256', models.CharField(editable=False, max_length=64, unique=True)),
                ('title', models.CharField(blank=True, default='', max_length=200)),
                ('through_seq', models.PositiveBigIntegerField()),
                ('event_no', models.PositiveBigIntegerField()),
                ('summary_version', models.PositiveIntegerField(default=0)),
                ('with_tools', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shares', to='chatapp.conversation', verbose_name='conversation')),
            ],
            options={
                'verbose_name': 'shared link',
            },
        ),
        migrations.RunPython(number_parts, migrations.RunPython.noop),
    ]
