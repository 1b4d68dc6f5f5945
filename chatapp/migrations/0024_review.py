"""Reviews of summaries: what a reviewer said of each, and the share of details that it kept."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Rows that are read, and written, at once: an audit may be long.
CHUNK = 200


def work_out_retention(apps, schema_editor):
    """Fill the share from the audits that there are, which may have any shape."""
    rows = apps.get_model("chatapp", "Summary").objects.using(schema_editor.connection.alias)
    audited = rows.filter(audit__has_key="salient").only("pk", "audit").order_by("pk")
    last = 0
    while chunk := list(audited.filter(pk__gt=last)[:CHUNK]):
        last = chunk[-1].pk
        for row in chunk:
            row.retention = kept(row.audit)
        rows.bulk_update([row for row in chunk if row.retention is not None], ["retention"])


def kept(audit):
    """As ``compression.store.rows.retention`` was when this was written."""
    if not isinstance(audit, dict):
        return None
    salient, retained = audit.get("salient"), audit.get("retained")
    whole = isinstance(salient, int) and isinstance(retained, int)
    return retained / salient if whole and 0 <= retained <= salient and salient else None


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0023_shares_and_parts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='summary',
            name='retention',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='summary',
            name='review',
            field=models.CharField(blank=True, choices=[('seen', 'seen'), ('approved', 'approved'), ('needs_work', 'needs_work')], max_length=16, null=True),
        ),
        migrations.AddField(
            model_name='summary',
            name='review_note',
            field=models.CharField(blank=True, max_length=500, null=True),
        ),
        migrations.AddField(
            model_name='summary',
            name='reviewed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='summary',
            name='reviewer',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['created_at'], name='summary_made'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['status', 'review'], name='summary_to_review'),
        ),
        migrations.RunPython(work_out_retention, migrations.RunPython.noop),
    ]
