"""people

No table is made anew, as SQLite would to take a default away: others refer to these rows, and their keys hold.
"""

import json

import sqlalchemy as sa
from alembic import op

import storage.types

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | None = None
depends_on: str | None = None

_DEFAULT_SCOPES = json.dumps(["bucket", "post", "read", "run"])


def upgrade() -> None:
    """Bring the tables forward: roles, scopes, browser sessions, sign-in links, the audit log's watermark."""
    _add_roles()
    _add_scopes()
    _create_browser_sessions()
    _create_sign_in_links()
    _mark_audit()


def downgrade() -> None:
    """Take the tables back; an operator becomes an organizer."""
    with op.batch_alter_table("audit", recreate="never") as audit:
        audit.drop_index(op.f("ix_audit_flushed_at"))
        audit.drop_index(op.f("ix_audit_actor"))
        audit.drop_index(op.f("ix_audit_action"))
        audit.drop_column("flushed_at")
    op.drop_table("sign_in_links")
    op.drop_table("browser_sessions")
    with op.batch_alter_table("tokens", recreate="never") as tokens:
        tokens.drop_column("last_origin")
        tokens.drop_column("scopes")
    with op.batch_alter_table("users", recreate="never") as users:
        users.add_column(sa.Column("is_organizer", sa.Boolean(), nullable=False, server_default=sa.false()))
    organizers = "UPDATE users SET is_organizer = :yes WHERE role IN ('organizer', 'operator')"
    op.execute(sa.text(organizers).bindparams(yes=True))
    with op.batch_alter_table("users", recreate="never") as users:
        users.drop_column("role")


def _add_roles() -> None:
    with op.batch_alter_table("users", recreate="never") as users:
        users.add_column(sa.Column("role", sa.String(), nullable=False, server_default="person"))
    op.execute(sa.text("UPDATE users SET role = 'organizer' WHERE is_organizer = :yes").bindparams(yes=True))
    with op.batch_alter_table("users", recreate="never") as users:
        users.drop_column("is_organizer")


def _add_scopes() -> None:
    with op.batch_alter_table("tokens", recreate="never") as tokens:
        tokens.add_column(sa.Column("scopes", sa.JSON(), nullable=False, server_default=_DEFAULT_SCOPES))
        tokens.add_column(sa.Column("last_origin", sa.String(), nullable=False, server_default=""))


def _create_browser_sessions() -> None:
    op.create_table(
        "browser_sessions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=True),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("browser", sa.String(), nullable=False),
        sa.Column("last_origin", sa.String(), nullable=False),
        sa.Column("created_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("ended_at", storage.types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user"], ["users.name"], name="fk_browser_sessions_user_users"),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_browser_sessions_token_id_tokens"),
        sa.PrimaryKeyConstraint("id", name="pk_browser_sessions"),
        sa.UniqueConstraint("digest", name="uq_browser_sessions_digest"),
    )
    op.create_index(op.f("ix_browser_sessions_user"), "browser_sessions", ["user"], unique=False)


def _create_sign_in_links() -> None:
    op.create_table(
        "sign_in_links",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("created_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("used_at", storage.types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user"], ["users.name"], name="fk_sign_in_links_user_users"),
        sa.PrimaryKeyConstraint("id", name="pk_sign_in_links"),
        sa.UniqueConstraint("digest", name="uq_sign_in_links_digest"),
    )
    op.create_index(op.f("ix_sign_in_links_user"), "sign_in_links", ["user"], unique=False)


def _mark_audit() -> None:
    with op.batch_alter_table("audit", recreate="never") as audit:
        audit.add_column(sa.Column("flushed_at", storage.types.UtcDateTime(timezone=True), nullable=True))
        audit.create_index(op.f("ix_audit_flushed_at"), ["flushed_at"], unique=False)
        audit.create_index(op.f("ix_audit_actor"), ["actor"], unique=False)
        audit.create_index(op.f("ix_audit_action"), ["action"], unique=False)
