"""The full-text index of SQLite knows each message's conversation.

Without it, a search within one conversation first finds the terms in everybody's messages: with a
thousand conversations in the index it took as many times longer. The number of the conversation is
one more term of each message, in a column of its own. PostgreSQL combines its two indexes instead.

SQLite drops a table's triggers when it remakes the table: a later migration that remakes
``chatapp_message`` must run ``create`` again (a test looks for the triggers after all migrations).
"""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("chatapp.migrations.0003_search")
COLUMNS = "conversation_id, text"

SQLITE = [
    f"""
    CREATE VIRTUAL TABLE chatapp_messagetext USING fts5(
        {COLUMNS}, content='chatapp_message', content_rowid='id', tokenize='porter unicode61'
    )
    """,
    f"""
    CREATE TRIGGER chatapp_messagetext_insert AFTER INSERT ON chatapp_message
    WHEN NEW.status <> 'streaming'
    BEGIN
        INSERT INTO chatapp_messagetext (rowid, {COLUMNS})
        VALUES (NEW.id, NEW.conversation_id, NEW.text);
    END
    """,
    f"""
    CREATE TRIGGER chatapp_messagetext_delete AFTER DELETE ON chatapp_message
    WHEN OLD.status <> 'streaming'
    BEGIN
        INSERT INTO chatapp_messagetext (chatapp_messagetext, rowid, {COLUMNS})
        VALUES ('delete', OLD.id, OLD.conversation_id, OLD.text);
    END
    """,
    f"""
    CREATE TRIGGER chatapp_messagetext_update
    AFTER UPDATE OF conversation_id, text, status ON chatapp_message
    WHEN OLD.text IS NOT NEW.text OR (OLD.status = 'streaming') <> (NEW.status = 'streaming')
        OR OLD.conversation_id <> NEW.conversation_id
    BEGIN
        INSERT INTO chatapp_messagetext (chatapp_messagetext, rowid, {COLUMNS})
        SELECT 'delete', OLD.id, OLD.conversation_id, OLD.text WHERE OLD.status <> 'streaming';
        INSERT INTO chatapp_messagetext (rowid, {COLUMNS})
        SELECT NEW.id, NEW.conversation_id, NEW.text WHERE NEW.status <> 'streaming';
    END
    """,
    f"""
    INSERT INTO chatapp_messagetext (rowid, {COLUMNS})
    SELECT id, {COLUMNS} FROM chatapp_message WHERE status <> 'streaming'
    """,
]


def create(apps, schema_editor):
    """Make the index anew and fill it."""
    _remake(schema_editor, SQLITE)


def drop(apps, schema_editor):
    """Make the index as it was, and fill it."""
    _remake(schema_editor, BEFORE.SQLITE)


def _remake(schema_editor, statements):
    if schema_editor.connection.vendor == "sqlite":
        for statement in [*BEFORE.SQLITE_BACK, *statements]:
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0013_tool_rounds")]

    operations = [migrations.RunPython(create, drop)]
