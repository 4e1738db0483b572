"""The order of text: by its characters' numbers on every database, as cursors and ranges of names need.

PostgreSQL sorts by the language of its database unless a column says otherwise, and there `dir0` may stand before
`dir/b`, and `B` behind `a`. SQLite's own order is that of the numbers.
"""

from sqlalchemy import Connection, text

_SORTED_OTHERWISE = text("""
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND data_type IN ('character varying', 'text')
    AND collation_name IS DISTINCT FROM 'C'
    ORDER BY table_name, column_name
""")


def sort_by_characters(connection: Connection) -> None:
    """Give every column of text that order. Does nothing where they have it; the caller commits."""
    if connection.dialect.name != "postgresql":
        return
    quote = connection.dialect.identifier_preparer.quote
    for table, column in connection.execute(_SORTED_OTHERWISE).all():
        changed = f'ALTER COLUMN {quote(column)} TYPE varchar COLLATE "C"'
        connection.exec_driver_sql(f"ALTER TABLE {quote(table)} {changed}")
