"""Alembic's environment: runs the migrations in the transaction that `graph.archive.database` has begun."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table=context.config.attributes["version_table"],
    transactional_ddl=connection.dialect.name != "mysql",
)
with context.begin_transaction():
    context.run_migrations()
