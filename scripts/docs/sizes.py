"""The table of fixed limits of the API, from the constants that enforce them."""

from graph.accounts.sessions import MAX_SESSIONS
from graph.feed.filters import MAX_KEYWORD_TERMS, MAX_KEYWORDS, MAX_USERS, MAX_WORD_LENGTH, MAX_WORDS
from graph.log.notification_groups import MAX_ACTORS
from graph.notifications.notifications import MAX_UNREAD
from graph.paging import MAX_PAGE
from graph.passwords.common_passwords import MAX_PASSWORD, MIN_PASSWORD
from graph.people.lists import MAX_LISTS, MAX_MEMBERS
from graph.posts.attachments import MAX_ALT, MAX_ATTACHMENTS, MAX_SIDE
from graph.posts.bookmarks import MAX_BOOKMARKS
from graph.posts.publication import MAX_ANCESTORS
from graph.posts.reposts import MAX_REPOSTS
from graph.text.entities import MAX_ENTITIES, MAX_TAG
from graph.text.validation import MAX_BIO, MAX_COMMENT, MAX_KEY, MAX_LOGIN, MAX_NAME, MAX_PLATFORM, MAX_TEXT, MIN_LOGIN
from graph.text.web_urls import MAX_URL
from graph.tuning import Tuning
from resolvers.lists import MAX_IDS
from resolvers.mutations import MAX_FOLLOWS
from resolvers.nodes import MAX_NODES
from scripts.docs.tables import markdown
from server.operations.operation_request import MAX_ID
from server.operations.parsing import MAX_ALIAS_LENGTH


def table() -> str:
    """Return the table."""
    rows = (
        ("login", f"{MIN_LOGIN} to {MAX_LOGIN} characters from `a-z`, `0-9` and `_`"),
        ("password", f"{MIN_PASSWORD} to {MAX_PASSWORD} characters"),
        ("display name", f"1 to {MAX_NAME} characters"),
        ("bio", f"up to {MAX_BIO} characters"),
        ("comment of a report", f"up to {MAX_COMMENT:,} characters"),
        ("URL of a picture or website", f"`https`, a domain name, up to {MAX_URL} ASCII characters in all"),
        (
            "text of a post",
            f"1 to {MAX_TEXT:,} characters after trimming white space and normalising to NFC, or none with attachments",
        ),
        (
            "mentions, hashtags and links of a post",
            f"{MAX_ENTITIES} in total; a hashtag has up to {MAX_TAG} characters",
        ),
        (
            "attachments of a post",
            f"{MAX_ATTACHMENTS}; URLs of up to {MAX_URL} characters, alternative texts of {MAX_ALT:,}, "
            f"sides of {MAX_SIDE:,} pixels",
        ),
        ("platform of a post", f"1 to {MAX_PLATFORM} characters"),
        ("idempotency key", f"1 to {MAX_KEY} printable ASCII characters"),
        ("page of a connection (`first`, `last`)", f"1 to {MAX_PAGE} entries"),
        ("users of a notification (`limit` of `actors`)", f"1 to {MAX_ACTORS}"),
        ("posts above a reply (`limit` of `ancestors`)", f"1 to {MAX_ANCESTORS}"),
        (
            "notifications of a user",
            f"the newest {Tuning().notifications_kept:,}; `unreadCount` counts up to {MAX_UNREAD}",
        ),
        ("ids of `nodes`", f"{MAX_NODES}"),
        ("users of `followUsers` and `unfollowUsers`", f"1 to {MAX_FOLLOWS}"),
        ("reposts of a user", f"{MAX_REPOSTS:,} at a time"),
        ("bookmarks of a user", f"{MAX_BOOKMARKS:,}, not counting those of deleted posts"),
        ("users whom a user mutes or blocks", f"{Tuning().max_blocked:,} each (`FANLINE_MAX_BLOCKED`)"),
        ("lists of a user", f"{MAX_LISTS} with names of 1 to {MAX_NAME} characters, {MAX_MEMBERS} members each"),
        ("users of `createList` and `updateList`", f"{MAX_IDS} in each field"),
        ("sessions of a user", f"{MAX_SESSIONS}; further log-ins end the oldest"),
        ("`users` of an event filter", f"{MAX_USERS:,}"),
        (
            "`keywords` of an event filter",
            f"{MAX_KEYWORDS} entries of {MAX_WORDS} words of {MAX_WORD_LENGTH} characters, {MAX_KEYWORD_TERMS:,} terms",
        ),
        ("alias in a document", f"{MAX_ALIAS_LENGTH} characters"),
        ("id of a persisted document", f"{MAX_ID} characters"),
    )
    return markdown(("what", "limit"), rows)
