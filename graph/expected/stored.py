"""The keys of the store that hold the content, and their values (see `graph.keys`).

Tombstones up to a number can be left out. The tombstone floor, which replaces trimmed tombstones, is never among the
values, because only events that arrive late need it. The floors of erased users are an exception: any further event of
these users is late.
"""

from collections.abc import Collection, Iterable, Mapping

from graph import keys
from graph.fold.content import Account, Content, ListedPosts, ListUnderPost, NotificationGroups, Part
from graph.fold.hot_window import UNCUT, Cut, Cuts
from graph.fold.values import Hash, SortedSet, Stored, tombstone_keys, versioned_set_keys
from graph.log.events import PostPublished
from graph.post_lists import REPLIED, TIMELINE, PostList
from graph.records import record_fields
from graph.relations.register import RELATIONS
from graph.tuning import Tuning


def stored(
    content: Content,
    tombstones_after: int = 0,
    cuts: Cuts | None = None,
    deleted: Collection[int] = (),
    notifications_kept: int = Tuning().notifications_kept,
) -> Stored:
    """Yield all keys of the content, with tombstones whose numbers are higher than `tombstones_after`.

    For lists with a cut, the keys hold the posts above the archive floor and the count of the others. `deleted` has
    posts that were deleted by events outside the content: their records get no counts. A list of notifications holds
    the newest `notifications_kept` groups. For erased users, only floors, tombstones and reserved logins remain.
    """
    for key, value in unerased(content, tombstones_after, cuts or {}, deleted, notifications_kept):
        if owner_of(key) not in content.erased or key.startswith(keys.user(0)[:-2]):
            yield key, value
    for user, number in content.erased.items():
        if content.includes(Part.ACCOUNT, user):
            yield from floors_of(user, number)


def owner_of(key: str) -> int:
    """Return the id of the user or post that a key belongs to, or 0 if there is none."""
    owner = key.partition("{")[2].partition("}")[0]
    return int(owner) if owner.isdecimal() else 0


def floors_of(user: int, number: int) -> Stored:
    """Yield the keys that remain of an erased user besides the tombstone: the floors of the user's sets."""
    for key in keys.USER_SETS:
        yield keys.gone(key(user)), SortedSet(f=number)
    yield keys.notifications(user), SortedSet(f=number)
    yield keys.notifications_read(user), str(number)


def unerased(
    content: Content, tombstones_after: int, cuts: Cuts, deleted: Collection[int], notifications_kept: int
) -> Stored:
    """Yield all keys of the content, including the former keys of erased users."""
    buried = {post for lists in (content.posts, content.replied) for posts in lists.values() for post in posts.deleted}
    for user, account in content.accounts.items():
        yield from account_keys(user, account)
    yield from collected(content.accounts)
    for relation in RELATIONS:
        yield from relation.stored(content, tombstones_after)
    for key, sets in ((keys.liked, content.liked), (keys.reposted, content.reposted)):
        for user, held in sets.items():
            yield from versioned_set_keys(key, user, held, tombstones_after)
    records: dict[int, Hash] = {}
    for post_list, lists in ((TIMELINE, content.posts), (REPLIED, content.replied)):
        cut = cuts.get(post_list, UNCUT)
        for author, posts in lists.items():
            yield from list_keys(post_list, author, posts.live, posts.deleted, cut, tombstones_after)
            records |= records_of(post_list, posts, cut.floors.get(author, 0))
            records |= {post: Hash(deleted=str(n)) for post, n in posts.deleted.items() if n > tombstones_after}
    for post_list, lists_by_post in content.under_posts.items():
        cut = cuts.get(post_list, UNCUT)
        for owner, listed in lists_by_post.items():
            yield from list_keys(post_list, owner, listed.live, listed.deleted, cut, tombstones_after)
            count = length(listed, cut.floors.get(owner, 0), cut.cold.get(owner, 0))
            if count and owner not in buried and owner not in deleted:
                records.setdefault(owner, Hash())[post_list.count or ""] = str(count)
    for author_posts in content.posts.values():
        for post, likes in author_posts.likes.items():
            yield from versioned_set_keys(keys.likes, post, likes, tombstones_after)
            if likes.members:
                records.setdefault(post, Hash())["likes"] = str(len(likes.members))
    for post, fields in records.items():
        yield keys.post(post), fields
    for user, held_groups in content.notifications.items():
        yield from notification_keys(user, held_groups, notifications_kept)


def length(held: ListUnderPost, floor: int, cold: int) -> int:
    """Return the length of a list with the given archive floor and count of archived posts. O(n)."""
    return sum(post > floor for post in held.live) + cold


def collected(accounts: Mapping[int, Account]) -> Stored:
    """Yield the keys that list all suspended users, all deleted users, and the users that are being erased."""
    if suspended := {str(user): str(each.suspended) for user, each in accounts.items() if each.suspended}:
        yield keys.SUSPENDED, Hash(suspended)
    deleted = {user: each for user, each in accounts.items() if each.deleted or each.erased}
    if deleted:
        yield keys.DELETED, Hash({str(user): str(-each.erased or each.deleted) for user, each in deleted.items()})
    if erasing := {str(user): each.deleted for user, each in deleted.items() if not each.erased}:
        yield keys.ERASING, SortedSet(erasing)


def account_keys(user: int, account: Account) -> Stored:
    """Yield the keys of a user's profile and login; for a deleted user, the tombstone and the reserved login."""
    if account.deleted:
        yield keys.user(user), Hash(deleted=str(account.deleted))
        yield keys.reserved(account.login_hash), str(account.deleted)
        return
    fields = Hash()
    for name, (number, value) in account.fields.items():
        fields[name], fields[f"{name}:at"] = value, str(number)
    for permission, number in account.permissions.items():
        fields[keys.permission(permission)] = str(number)
    if account.password:
        fields["password"] = str(account.password)
    if account.suspended:
        fields["suspended"] = str(account.suspended)
    if fields:
        yield keys.user(user), fields
    if account.login is not None:
        yield keys.login(account.login), login_fields(user, account)


def login_fields(user: int, account: Account) -> Hash:
    """Return the stored fields of a user's login: password hash, nonce, user id, and last change of the password."""
    fields = Hash(secret=account.secret, nonce=account.nonce, user=str(user))
    if account.password:
        fields["secret:at"] = str(account.password)
    return fields


def list_keys(
    post_list: PostList,
    owner: int,
    live: Iterable[int],
    deleted: Mapping[int, int],
    cut: Cut = UNCUT,
    tombstones_after: int = 0,
) -> Stored:
    """Yield the keys of a list: its hot posts with the archive floor, tombstones, and the count of archived posts."""
    name, floor, cold = post_list.key(owner), cut.floors.get(owner, 0), cut.cold.get(owner, 0)
    hot = SortedSet({str(post): post for post in live if post > floor})
    if floor or (hot and post_list.is_of_users):
        hot["f"] = floor
    if hot:
        yield name, hot
    yield from tombstone_keys(name, deleted, tombstones_after)
    if cold:
        yield post_list.cold(owner), str(cold)


def records_of(post_list: PostList, posts: ListedPosts, floor: int) -> dict[int, Hash]:
    """Return the records of the list's hot posts, except records that belong to another list.

    Records of listed posts belong to timelines, and records of unlisted posts to the lists of an author's replies.
    """
    hot = {post: body for post, body in posts.live.items() if post > floor}
    return {post: record(post, body) for post, body in hot.items() if body.listed is (post_list is TIMELINE)}


def record(post: int, body: PostPublished) -> Hash:
    """Return the record of a live post."""
    words = record_fields(post, body)
    return Hash(zip(words[::2], words[1::2], strict=True))


def notification_keys(user: int, held: NotificationGroups, kept: int) -> Stored:
    """Yield the keys of a user's newest notifications and of the number up to which they are read."""
    groups, floor = held.newest(kept)
    members = SortedSet({group.member: number for group, number in groups.items()} | ({"f": floor} if floor else {}))
    if members:
        yield keys.notifications(user), members
    if held.read_up_to:
        yield keys.notifications_read(user), str(held.read_up_to)
