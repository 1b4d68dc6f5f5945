"""Full-text search of messages, on both databases, with what is stored already.

SQLite: an FTS5 table over the messages' own text, kept by one trigger for each kind of change (two
for one kind corrupt it). PostgreSQL: a stored column. Both leave out what is still streaming, so
that a checkpoint of a reply costs no indexing.

SQLite drops a table's triggers when it remakes the table: a later migration that remakes
``chatapp_message`` must run ``create`` again (a test looks for the triggers after all migrations).
"""

from django.db import migrations

# PostgreSQL takes paths, hosts and hyphenated words for single words, and would find no part of
# them; and it refuses vectors of a megabyte, which this many characters cannot reach.
SIGNS = r"""/\.-_:@=<>"""
MOST_CHARACTERS = 100_000

SQLITE = [
    """
    CREATE VIRTUAL TABLE chatapp_messagetext USING fts5(
        text, content='chatapp_message', content_rowid='id', tokenize='porter unicode61'
    )
    """,
    """
    CREATE TRIGGER chatapp_messagetext_insert AFTER INSERT ON chatapp_message
    WHEN NEW.status <> 'streaming'
    BEGIN
        INSERT INTO chatapp_messagetext (rowid, text) VALUES (NEW.id, NEW.text);
    END
    """,
    """
    CREATE TRIGGER chatapp_messagetext_delete AFTER DELETE ON chatapp_message
    WHEN OLD.status <> 'streaming'
    BEGIN
        INSERT INTO chatapp_messagetext (chatapp_messagetext, rowid, text)
        VALUES ('delete', OLD.id, OLD.text);
    END
    """,
    """
    CREATE TRIGGER chatapp_messagetext_update AFTER UPDATE OF text, status ON chatapp_message
    WHEN OLD.text IS NOT NEW.text OR (OLD.status = 'streaming') <> (NEW.status = 'streaming')
    BEGIN
        INSERT INTO chatapp_messagetext (chatapp_messagetext, rowid, text)
        SELECT 'delete', OLD.id, OLD.text WHERE OLD.status <> 'streaming';
        INSERT INTO chatapp_messagetext (rowid, text)
        SELECT NEW.id, NEW.text WHERE NEW.status <> 'streaming';
    END
    """,
    """
    INSERT INTO chatapp_messagetext (rowid, text)
    SELECT id, text FROM chatapp_message WHERE status <> 'streaming'
    """,
]
SQLITE_BACK = [
    "DROP TRIGGER IF EXISTS chatapp_messagetext_insert",
    "DROP TRIGGER IF EXISTS chatapp_messagetext_delete",
    "DROP TRIGGER IF EXISTS chatapp_messagetext_update",
    "DROP TABLE IF EXISTS chatapp_messagetext",
]
# A database of the C locale makes only ASCII letters small; ICU, where it is built in, all.
ICU = "SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'"
POSTGRESQL = [
    f"""
    ALTER TABLE chatapp_message ADD COLUMN search_vector tsvector GENERATED ALWAYS AS (
        CASE WHEN status <> 'streaming' THEN to_tsvector(
            'english'::regconfig,
            translate(lower(left(text, {MOST_CHARACTERS}) COLLATE "%s"), E'{SIGNS.replace(chr(92), chr(92) * 2)}',
                      '{" " * len(SIGNS)}')
        ) END
    ) STORED
    """,
    "CREATE INDEX chatapp_message_search ON chatapp_message USING gin (search_vector)",
]
POSTGRESQL_BACK = [
    "DROP INDEX IF EXISTS chatapp_message_search",
    "ALTER TABLE chatapp_message DROP COLUMN IF EXISTS search_vector",
]


def create(apps, schema_editor):
    """Make the index and fill it."""
    if schema_editor.connection.vendor == "sqlite":
        for statement in SQLITE:
            schema_editor.execute(statement)
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(ICU)
        collation = "und-x-icu" if cursor.fetchone() else "default"
    for statement in POSTGRESQL:
        schema_editor.execute(statement.replace("%s", collation), params=None)


def drop(apps, schema_editor):
    """Take it away."""
    sqlite = schema_editor.connection.vendor == "sqlite"
    for statement in SQLITE_BACK if sqlite else POSTGRESQL_BACK:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0002_seen_and_notify")]

    operations = [migrations.RunPython(create, drop)]
