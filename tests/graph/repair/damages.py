"""Damages of derived data, each with the kinds of difference that a check finds."""

from collections.abc import Awaitable, Callable

from graph import keys
from graph.log.numbers import entry_id
from graph.model import Permission
from graph.records import POST_COLUMNS, as_post
from graph.repair.repair import Kind
from tests.graph.repair.broken import RepairWorld

Damage = Callable[[RepairWorld], Awaitable[None]]
DAMAGES: dict[str, tuple[Damage, set[Kind]]] = {}
"""Damages by name, with the kinds of difference that a check finds."""


def finds(*kinds: Kind) -> Callable[[Damage], Damage]:
    """Register a damage with the kinds of difference that it causes."""

    def register(damage: Damage) -> Damage:
        DAMAGES[damage.__name__] = damage, set(kinds)
        return damage

    return register


async def number(world: RepairWorld, key: str, member: int) -> int:
    """Return the score of a member that exists."""
    score = await world.raw.zscore(key, str(member))
    assert score is not None
    return int(score)


@finds(Kind.FOLLOWER_MISSING)
async def a_follower_is_removed(w: RepairWorld) -> None:
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(Kind.FOLLOWER_MISSING)
async def a_follower_is_removed_below_the_tombstone_floor(w: RepairWorld) -> None:
    gone = keys.gone(keys.followers(w.bob))
    await w.raw.delete(gone)
    await w.raw.zadd(gone, {"f": await w.graph.log.last()})
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(Kind.FOLLOWER_MISSING)
async def all_followers_are_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.followers(w.star))


@finds(Kind.FOLLOWEE_MISSING, Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def a_followee_is_removed(w: RepairWorld) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)


@finds(Kind.FOLLOWEE_MISSING, Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def all_followees_are_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.following(w.alice))


@finds(Kind.UNFOLLOW_ONE_SIDED, Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def an_unfollow_changed_only_the_followers_list(w: RepairWorld) -> None:
    number_ = await number(w, keys.following(w.alice), w.carol)
    await w.raw.zrem(keys.following(w.alice), w.carol)
    await w.raw.zadd(keys.gone(keys.following(w.alice)), {str(w.carol): number_ + 1})
    w.follows[w.alice].discard(w.carol)


@finds(Kind.UNFOLLOW_ONE_SIDED, Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def a_one_sided_unfollow_has_lost_its_tombstone(w: RepairWorld) -> None:
    await w.raw.zrem(keys.following(w.alice), w.carol)
    await w.raw.zadd(keys.gone(keys.following(w.alice)), {"f": await w.graph.log.last()})
    w.follows[w.alice].discard(w.carol)


@finds(Kind.UNFOLLOW_ONE_SIDED)
async def an_unfollow_changed_only_the_followees_list(w: RepairWorld) -> None:
    number_ = await number(w, keys.followers(w.carol), w.alice)
    await w.raw.zrem(keys.followers(w.carol), w.alice)
    await w.raw.zadd(keys.gone(keys.followers(w.carol)), {str(w.alice): number_ + 1})
    w.follows[w.alice].discard(w.carol)


@finds(Kind.FOLLOW_NUMBERS_DIFFER)
async def a_follow_has_a_newer_number_in_the_followees_list(w: RepairWorld) -> None:
    await w.raw.zadd(keys.followers(w.bob), {str(w.alice): await w.graph.log.last()})


@finds(Kind.FOLLOW_NUMBERS_DIFFER)
async def a_follow_has_a_newer_number_in_the_followers_list(w: RepairWorld) -> None:
    await w.raw.zadd(keys.following(w.alice), {str(w.bob): await w.graph.log.last()})


@finds(Kind.FOLLOW_NOT_APPLIED, Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def a_follow_is_lost_on_both_sides(w: RepairWorld) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(Kind.FOLLOW_NOT_APPLIED, Kind.CACHE_POST_MISSING)
async def an_unfollow_is_lost_on_both_sides(w: RepairWorld) -> None:
    for key, member in ((keys.following(w.dave), w.bob), (keys.followers(w.bob), w.dave)):
        await w.raw.delete(keys.gone(key))
        await w.raw.zadd(key, {str(member): 1})


@finds(Kind.POST_NOT_APPLIED)
async def a_post_is_lost_and_unlisted(w: RepairWorld) -> None:
    await w.raw.delete(keys.post(w.posts[w.bob][-1]))
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])


@finds(Kind.POST_NOT_APPLIED, Kind.COUNT_WRONG)
async def an_archived_post_is_lost(w: RepairWorld) -> None:
    w.sql("DELETE FROM fanline_posts WHERE id = ?", w.posts[w.bob][2])


@finds(Kind.DELETION_NOT_APPLIED, Kind.POST_UNLISTED)
async def a_deletion_is_lost(w: RepairWorld) -> None:
    post = w.deleted[1]
    await w.raw.delete(keys.post(post), keys.gone(keys.posts(w.bob)))
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "back"})


@finds(Kind.POST_UNLISTED)
async def a_post_is_removed_from_its_timeline(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.carol), w.posts[w.carol][0])


@finds(Kind.POST_UNLISTED)
async def a_post_below_the_tombstone_floor_is_removed_from_its_timeline(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])
    await w.raw.zadd(keys.gone(keys.posts(w.bob)), {"f": await w.graph.log.last()})


@finds(Kind.POST_UNLISTED)
async def a_timeline_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.posts(w.carol))


@finds(Kind.POST_UNLISTED, Kind.STORE_FLOOR_LOW)
async def a_timeline_with_archived_posts_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.posts(w.bob))


@finds(Kind.RECORD_MISSING)
async def a_record_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.post(w.posts[w.bob][-1]))


@finds(Kind.RECORD_MISSING)
async def a_record_is_damaged(w: RepairWorld) -> None:
    await w.raw.hdel(keys.post(w.posts[w.carol][0]), "text")


@finds(Kind.POST_LOST)
async def a_record_and_its_event_are_lost(w: RepairWorld) -> None:
    lost = w.posts[w.carol].pop()
    await w.raw.delete(keys.post(lost))
    await w.raw.xdel(keys.LOG, entry_id(lost))


@finds(Kind.DELETED_POST_LISTED)
async def a_deleted_post_is_listed_again(w: RepairWorld) -> None:
    deleted = w.deleted[1]
    await w.raw.zadd(keys.posts(w.bob), {str(deleted): deleted})


@finds(Kind.DELETED_POST_LISTED)
async def a_deleted_post_is_listed_and_has_lost_its_tombstone(w: RepairWorld) -> None:
    await a_deleted_post_is_listed_again(w)
    await w.raw.delete(keys.gone(keys.posts(w.bob)))
    await w.raw.zadd(keys.gone(keys.posts(w.bob)), {"f": await w.graph.log.last()})


@finds(Kind.WRONG_AUTHOR_LISTED)
async def a_post_is_listed_for_another_author(w: RepairWorld) -> None:
    post = w.posts[w.alice][0]
    await w.raw.zadd(keys.posts(w.carol), {str(post): post})


@finds(Kind.ARCHIVED_POST_LISTED)
async def an_archived_post_is_listed(w: RepairWorld) -> None:
    post = w.posts[w.bob][2]
    await w.raw.zadd(keys.posts(w.bob), {str(post): post})


@finds(Kind.WRONG_POSITION)
async def a_post_is_listed_in_a_wrong_position(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.carol), {str(w.posts[w.carol][0]): w.posts[w.carol][1] + 1})


@finds(Kind.DELETED_POST_HAS_RECORD)
async def a_deleted_post_has_a_record(w: RepairWorld) -> None:
    post = w.deleted[1]
    await w.raw.delete(keys.post(post))
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "back"})


@finds(Kind.ARCHIVED_POST_HAS_RECORD)
async def an_archived_post_has_a_record(w: RepairWorld) -> None:
    post = w.posts[w.bob][2]
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "number 3"})


@finds(Kind.RECORD_DAMAGED)
async def an_archived_post_has_a_partial_record(w: RepairWorld) -> None:
    await w.raw.hset(keys.post(w.posts[w.bob][2]), "text", "number 3")


@finds(Kind.STORE_FLOOR_LOW)
async def an_archive_floor_is_lost(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.bob), "f")


@finds(Kind.STORE_FLOOR_LOW)
async def an_archive_floor_is_too_low(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.bob), {"f": 0})


@finds(Kind.ARCHIVE_FLOOR_LOW)
async def the_archive_has_lost_its_floor(w: RepairWorld) -> None:
    w.sql("DELETE FROM fanline_floors WHERE author = ?", w.bob)


@finds(Kind.MOVE_UNFINISHED)
async def the_archive_does_not_know_what_was_freed(w: RepairWorld) -> None:
    w.sql("UPDATE fanline_floors SET freed = 0 WHERE author = ?", w.bob)


async def begin_to_move_all(w: RepairWorld) -> list[int]:
    """Begin to move all of bob's posts, without the entry in the archiver's work set. Return the posts."""
    assert w.graph.archive is not None
    hot = await w.hot()
    rows = [as_post(post, await w.raw.hmget(keys.post(post), POST_COLUMNS)) for post in hot]
    floor = (await w.graph.archive.floors(w.bob)).moved
    assert await w.graph.archive.add(w.bob, [row for row in rows if row is not None], floor, hot[-1])
    await w.raw.delete(keys.ARCHIVABLE)
    return hot


@finds(Kind.MOVE_UNFINISHED)
async def a_move_is_unfinished_and_not_scheduled(w: RepairWorld) -> None:
    await begin_to_move_all(w)


@finds(Kind.MOVE_UNFINISHED, Kind.ROW_MISSING)
async def an_unfinished_move_has_lost_a_row(w: RepairWorld) -> None:
    w.sql("DELETE FROM fanline_posts WHERE id = ?", (await begin_to_move_all(w))[0])


@finds(Kind.ROW_MISSING, Kind.COUNT_WRONG)
async def a_row_is_lost_whose_record_exists(w: RepairWorld) -> None:
    await an_archived_post_has_a_record(w)
    w.sql("DELETE FROM fanline_posts WHERE id = ?", w.posts[w.bob][2])


@finds(Kind.COUNT_WRONG)
async def a_row_and_its_event_are_lost(w: RepairWorld) -> None:
    lost = w.posts[w.bob].pop(2)
    w.sql("DELETE FROM fanline_posts WHERE id = ?", lost)
    await w.raw.xdel(keys.LOG, entry_id(lost))


@finds(Kind.DELETED_POST_HAS_ROW)
async def the_archive_holds_a_deleted_post(w: RepairWorld) -> None:
    w.sql("INSERT INTO fanline_posts (id, author, text) VALUES (?, ?, 'back')", w.deleted[0], w.bob)


@finds(Kind.DELETED_POST_HAS_ROW)
async def the_archive_holds_a_post_whose_deletion_is_not_counted(w: RepairWorld) -> None:
    post = w.posts[w.bob].pop(3)
    await w.raw.hset(keys.post(post), "deleted", await w.graph.log.last())


@finds(Kind.ROW_ORPHANED)
async def only_the_archive_holds_a_hot_post(w: RepairWorld) -> None:
    post = w.posts[w.carol][-1]
    await w.raw.delete(keys.post(post))
    await w.raw.zrem(keys.posts(w.carol), post)
    w.sql("INSERT INTO fanline_posts (id, author, text) VALUES (?, ?, 'the second')", post, w.carol)


@finds(Kind.ROW_ORPHANED, Kind.STORE_FLOOR_LOW, Kind.COUNT_WRONG)
async def store_and_archive_have_lost_the_floor(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.bob), "f")
    w.sql("DELETE FROM fanline_floors WHERE author = ?", w.bob)


@finds(Kind.STORE_FLOOR_LOW)
async def a_timeline_without_archived_posts_has_lost_its_floor(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.carol), "f")


@finds(Kind.COUNT_WRONG)
async def a_count_is_wrong(w: RepairWorld) -> None:
    await w.raw.set(keys.cold(w.bob), 77)


@finds(Kind.COUNT_WRONG)
async def a_count_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.cold(w.bob))


@finds(Kind.COUNT_WRONG)
async def an_author_without_archived_posts_has_a_count(w: RepairWorld) -> None:
    await w.raw.set(keys.cold(w.carol), 1)


@finds(Kind.CACHE_POST_MISSING)
async def a_post_is_missing_in_a_cache(w: RepairWorld) -> None:
    await w.raw.zrem(keys.home(w.alice), w.posts[w.bob][-1])


@finds(Kind.CACHE_POST_MISSING)
async def a_cache_has_too_low_a_floor(w: RepairWorld) -> None:
    await w.raw.zadd(keys.home(w.alice), {"f": 0})


@finds(Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def a_cache_holds_a_post_of_an_author_who_is_not_followed(w: RepairWorld) -> None:
    post = w.posts[w.dave][-1]
    await w.raw.zadd(keys.home(w.bob), {str(post): post})


@finds(Kind.CACHE_AUTHOR_NOT_FOLLOWED)
async def a_cache_has_a_mark_for_an_author_who_is_not_followed(w: RepairWorld) -> None:
    await w.raw.zadd(keys.home(w.carol), {f"a{w.dave}": -1})


@finds(Kind.CACHE_MARK_MISSING)
async def a_cache_has_no_mark_for_an_author_who_is_not_pushed(w: RepairWorld) -> None:
    await w.raw.zrem(keys.home(w.alice), f"a{w.star}")


@finds(Kind.CACHE_MALFORMED)
async def a_cache_has_no_floor(w: RepairWorld) -> None:
    await w.raw.zrem(keys.home(w.alice), "f")


@finds(Kind.CACHE_MALFORMED)
async def a_cache_never_expires(w: RepairWorld) -> None:
    await w.raw.persist(keys.home(w.alice))


@finds(Kind.CACHE_MALFORMED)
async def a_cache_has_a_post_in_a_wrong_position(w: RepairWorld) -> None:
    await w.raw.zadd(keys.home(w.alice), {str(w.posts[w.bob][-1]): w.posts[w.carol][-1] + 1})


@finds(Kind.PROFILE_INCOMPLETE)
async def a_profile_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.user(w.carol))


@finds(Kind.PERMISSION_NOT_APPLIED)
async def a_permission_is_lost(w: RepairWorld) -> None:
    await w.raw.hdel(keys.user(w.star), keys.permission(Permission.FIREHOSE))


@finds(Kind.PERMISSION_NOT_APPLIED)
async def a_revoked_permission_is_granted(w: RepairWorld) -> None:
    await w.raw.hset(keys.user(w.alice), keys.permission(Permission.FIREHOSE), w.alice)


@finds(Kind.PROFILE_INCOMPLETE, Kind.PERMISSION_NOT_APPLIED)
async def a_profile_is_lost_with_a_permission(w: RepairWorld) -> None:
    await w.raw.delete(keys.user(w.star))


@finds(Kind.PROFILE_INCOMPLETE)
async def a_profile_has_lost_its_name(w: RepairWorld) -> None:
    await w.raw.hdel(keys.user(w.carol), "name")
