"""Account deletion.

The UserDeleted event is the point of no return: after it, the log refuses events by the user and follows of the user.
When the mutation returns, the sessions have ended, the login is reserved, and the user and all of the user's data are
hidden from all users (`graph.projections.deletions`). The eraser removes the hidden data afterwards (`graph.erasure`).
"""

from graph import keys
from graph.accounts.users import Users, no_account
from graph.commit import Commit
from graph.errors import AccountDeleted
from graph.log.account_events import UserDeleted, login_hash
from graph.store.store import Store


class AccountDeletion:
    """Deletes the accounts of users."""

    def __init__(self, store: Store, commit: Commit, users: Users) -> None:
        self._store = store
        self._commit = commit
        self._users = users

    async def delete(self, user: int, password: str, *, network: str = "") -> None:
        """Delete the account of a user. Eight round trips and one hash.

        Raises Rejected (WRONG_CREDENTIALS and TOO_MANY_ATTEMPTS like a log-in, NOT_FOUND), AccountDeleted if the
        account is already deleted, and Overloaded; in these cases nothing is written. After StoreUnavailable, the
        account may nevertheless have been deleted; a worker then completes the deletion.
        """
        login, is_deleted = await self._store.read(
            [("HGET", keys.user(user), "login"), ("HEXISTS", keys.DELETED, str(user))]
        )
        if is_deleted:
            raise AccountDeleted
        if login is None:
            raise no_account()
        await self._users.verify_again(login, password, network, "password")
        await self._commit([UserDeleted(user, login_hash(login))])
