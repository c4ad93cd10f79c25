"""Renames the column of the archive watermark, to keep archivers of earlier versions from writing.

Each write of an archiver begins with an update of this column, under the name that the archiver's version knows.
"""

import sqlalchemy as sa
from alembic import op

TABLE = "archive_state"
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def rename_watermark(old: str, new: str) -> None:
    """Rename the column unless it has already been renamed: MySQL commits each step of a migration separately."""
    if old not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(TABLE)}:
        return
    if op.get_bind().dialect.name == "mysql":  # MariaDB before 10.5 needs the type, too
        op.alter_column(TABLE, old, new_column_name=new, existing_type=NUMBER, existing_nullable=False)
    else:
        op.execute(f"ALTER TABLE {TABLE} RENAME COLUMN {old} TO {new}")
