"""Every way to break what is derived in the small world, by name, with what a check finds then."""

from collections.abc import Awaitable, Callable

from graph import keys
from graph.log.numbers import entry_id
from graph.model import Permission
from graph.records import POST_COLUMNS, as_post
from graph.repair.repair import Kind
from tests.graph.repair.broken import Broken

Damage = Callable[[Broken], Awaitable[None]]
DAMAGES: dict[str, tuple[Damage, set[Kind]]] = {}
"""Every way to break something, by name, and what a check finds then."""


def finds(*kinds: Kind) -> Callable[[Damage], Damage]:
    """Note a damage with the kinds of difference that it makes."""

    def note(damage: Damage) -> Damage:
        DAMAGES[damage.__name__] = damage, set(kinds)
        return damage

    return note


async def number(world: Broken, key: str, member: int) -> int:
    """Read a score."""
    score = await world.raw.zscore(key, str(member))
    assert score is not None
    return int(score)


@finds(Kind.FOLLOWER)
async def a_follower_is_dropped(w: Broken) -> None:
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(Kind.FOLLOWER)
async def a_follower_is_dropped_whose_undoing_might_be_forgotten(w: Broken) -> None:
    gone = keys.gone(keys.followers(w.bob))
    await w.raw.delete(gone)
    await w.raw.zadd(gone, {"f": await w.graph.log.last()})
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(Kind.FOLLOWER)
async def all_followers_are_lost(w: Broken) -> None:
    await w.raw.delete(keys.followers(w.star))


@finds(Kind.FOLLOWING, Kind.CACHE_STRANGER)
async def a_followee_is_dropped(w: Broken) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)


@finds(Kind.FOLLOWING, Kind.CACHE_STRANGER)
async def all_followees_are_lost(w: Broken) -> None:
    await w.raw.delete(keys.following(w.alice))


@finds(Kind.UNFOLLOWED, Kind.CACHE_STRANGER)
async def an_unfollow_has_reached_the_own_list_only(w: Broken) -> None:
    number_ = await number(w, keys.following(w.alice), w.carol)
    await w.raw.zrem(keys.following(w.alice), w.carol)
    await w.raw.zadd(keys.gone(keys.following(w.alice)), {str(w.carol): number_ + 1})
    w.follows[w.alice].discard(w.carol)


@finds(Kind.UNFOLLOWED, Kind.CACHE_STRANGER)
async def an_unfollow_that_only_the_own_list_remembers_is_trimmed(w: Broken) -> None:
    await w.raw.zrem(keys.following(w.alice), w.carol)
    await w.raw.zadd(keys.gone(keys.following(w.alice)), {"f": await w.graph.log.last()})
    w.follows[w.alice].discard(w.carol)


@finds(Kind.UNFOLLOWED)
async def an_unfollow_has_reached_the_followers_only(w: Broken) -> None:
    number_ = await number(w, keys.followers(w.carol), w.alice)
    await w.raw.zrem(keys.followers(w.carol), w.alice)
    await w.raw.zadd(keys.gone(keys.followers(w.carol)), {str(w.alice): number_ + 1})
    w.follows[w.alice].discard(w.carol)


@finds(Kind.FOLLOW_NUMBER)
async def a_follow_has_a_newer_number_among_the_followers(w: Broken) -> None:
    await w.raw.zadd(keys.followers(w.bob), {str(w.alice): await w.graph.log.last()})


@finds(Kind.FOLLOW_NUMBER)
async def a_follow_has_a_newer_number_in_the_own_list(w: Broken) -> None:
    await w.raw.zadd(keys.following(w.alice), {str(w.bob): await w.graph.log.last()})


@finds(Kind.FORGOTTEN_FOLLOW, Kind.CACHE_STRANGER)
async def a_follow_is_lost_on_both_sides(w: Broken) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(Kind.FORGOTTEN_FOLLOW, Kind.CACHE_LACKS)
async def an_unfollow_is_lost_on_both_sides(w: Broken) -> None:
    for key, member in ((keys.following(w.dave), w.bob), (keys.followers(w.bob), w.dave)):
        await w.raw.delete(keys.gone(key))
        await w.raw.zadd(key, {str(member): 1})


@finds(Kind.FORGOTTEN_POST)
async def a_post_is_lost_with_its_place(w: Broken) -> None:
    await w.raw.delete(keys.post(w.posts[w.bob][-1]))
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])


@finds(Kind.FORGOTTEN_POST, Kind.COUNT)
async def an_archived_post_is_lost(w: Broken) -> None:
    w.sql("DELETE FROM fanline_posts WHERE id = ?", w.posts[w.bob][2])


@finds(Kind.FORGOTTEN_DELETION, Kind.UNLISTED)
async def a_deletion_is_lost(w: Broken) -> None:
    post = w.deleted[1]
    await w.raw.delete(keys.post(post), keys.gone(keys.posts(w.bob)))
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "back"})


@finds(Kind.UNLISTED)
async def a_post_is_dropped_from_its_timeline(w: Broken) -> None:
    await w.raw.zrem(keys.posts(w.carol), w.posts[w.carol][0])


@finds(Kind.UNLISTED)
async def a_post_is_dropped_and_deletions_of_its_time_are_forgotten(w: Broken) -> None:
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])
    await w.raw.zadd(keys.gone(keys.posts(w.bob)), {"f": await w.graph.log.last()})


@finds(Kind.UNLISTED)
async def a_timeline_is_lost(w: Broken) -> None:
    await w.raw.delete(keys.posts(w.carol))


@finds(Kind.UNLISTED, Kind.FLOOR)
async def a_timeline_with_archived_posts_is_lost(w: Broken) -> None:
    await w.raw.delete(keys.posts(w.bob))


@finds(Kind.RECORD)
async def a_record_is_lost(w: Broken) -> None:
    await w.raw.delete(keys.post(w.posts[w.bob][-1]))


@finds(Kind.RECORD)
async def a_record_is_damaged(w: Broken) -> None:
    await w.raw.hdel(keys.post(w.posts[w.carol][0]), "text")


@finds(Kind.LOST)
async def a_record_is_lost_that_the_log_forgot(w: Broken) -> None:
    lost = w.posts[w.carol].pop()
    await w.raw.delete(keys.post(lost))
    await w.raw.xdel(keys.LOG, entry_id(lost))


@finds(Kind.LISTED_DELETED)
async def a_deleted_post_is_listed_again(w: Broken) -> None:
    deleted = w.deleted[1]
    await w.raw.zadd(keys.posts(w.bob), {str(deleted): deleted})


@finds(Kind.LISTED_DELETED)
async def a_deleted_post_is_listed_and_its_deletion_forgotten(w: Broken) -> None:
    await a_deleted_post_is_listed_again(w)
    await w.raw.delete(keys.gone(keys.posts(w.bob)))
    await w.raw.zadd(keys.gone(keys.posts(w.bob)), {"f": await w.graph.log.last()})


@finds(Kind.LISTED_FOREIGN)
async def a_post_is_listed_for_somebody_else(w: Broken) -> None:
    post = w.posts[w.alice][0]
    await w.raw.zadd(keys.posts(w.carol), {str(post): post})


@finds(Kind.LISTED_ARCHIVED)
async def an_archived_post_is_listed(w: Broken) -> None:
    post = w.posts[w.bob][2]
    await w.raw.zadd(keys.posts(w.bob), {str(post): post})


@finds(Kind.MISPLACED)
async def a_post_is_listed_in_a_wrong_place(w: Broken) -> None:
    await w.raw.zadd(keys.posts(w.carol), {str(w.posts[w.carol][0]): w.posts[w.carol][1] + 1})


@finds(Kind.RESURRECTED)
async def a_deleted_post_has_its_record_back(w: Broken) -> None:
    post = w.deleted[1]
    await w.raw.delete(keys.post(post))
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "back"})


@finds(Kind.LEFTOVER)
async def an_archived_post_has_a_record(w: Broken) -> None:
    post = w.posts[w.bob][2]
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "number 3"})


@finds(Kind.UNREADABLE)
async def an_archived_post_has_half_a_record(w: Broken) -> None:
    await w.raw.hset(keys.post(w.posts[w.bob][2]), "text", "number 3")


@finds(Kind.FLOOR)
async def an_archive_floor_is_lost(w: Broken) -> None:
    await w.raw.zrem(keys.posts(w.bob), "f")


@finds(Kind.FLOOR)
async def an_archive_floor_is_too_low(w: Broken) -> None:
    await w.raw.zadd(keys.posts(w.bob), {"f": 0})


@finds(Kind.BEHIND)
async def the_archive_has_lost_its_floor(w: Broken) -> None:
    w.sql("DELETE FROM fanline_floors WHERE author = ?", w.bob)


@finds(Kind.UNFINISHED)
async def the_archive_does_not_know_what_was_freed(w: Broken) -> None:
    w.sql("UPDATE fanline_floors SET freed = 0 WHERE author = ?", w.bob)


async def a_move_of_all(w: Broken) -> list[int]:
    """Begin to move all of bob's posts, and forget about it."""
    assert w.graph.archive is not None
    hot = await w.hot()
    rows = [as_post(post, await w.raw.hmget(keys.post(post), POST_COLUMNS)) for post in hot]
    floor = (await w.graph.archive.floors(w.bob)).moved
    assert await w.graph.archive.add(w.bob, [row for row in rows if row is not None], floor, hot[-1])
    await w.raw.delete(keys.ARCHIVABLE)
    return hot


@finds(Kind.UNFINISHED)
async def a_move_broke_off_unnoted(w: Broken) -> None:
    await a_move_of_all(w)


@finds(Kind.UNFINISHED, Kind.ROW)
async def a_move_broke_off_and_a_row_is_lost(w: Broken) -> None:
    w.sql("DELETE FROM fanline_posts WHERE id = ?", (await a_move_of_all(w))[0])


@finds(Kind.ROW, Kind.COUNT)
async def a_row_is_lost_whose_record_exists(w: Broken) -> None:
    await an_archived_post_has_a_record(w)
    w.sql("DELETE FROM fanline_posts WHERE id = ?", w.posts[w.bob][2])


@finds(Kind.COUNT)
async def a_row_is_lost_for_good(w: Broken) -> None:
    lost = w.posts[w.bob].pop(2)
    w.sql("DELETE FROM fanline_posts WHERE id = ?", lost)
    await w.raw.xdel(keys.LOG, entry_id(lost))


@finds(Kind.DELETED_ROW)
async def the_archive_holds_a_deleted_post(w: Broken) -> None:
    w.sql("INSERT INTO fanline_posts (id, author, text) VALUES (?, ?, 'back')", w.deleted[0], w.bob)


@finds(Kind.DELETED_ROW)
async def the_archive_holds_a_post_whose_deletion_nobody_counted(w: Broken) -> None:
    post = w.posts[w.bob].pop(3)
    await w.raw.hset(keys.post(post), "deleted", await w.graph.log.last())


@finds(Kind.STRAY_ROW)
async def only_the_archive_holds_a_hot_post(w: Broken) -> None:
    post = w.posts[w.carol][-1]
    await w.raw.delete(keys.post(post))
    await w.raw.zrem(keys.posts(w.carol), post)
    w.sql("INSERT INTO fanline_posts (id, author, text) VALUES (?, ?, 'the second')", post, w.carol)


@finds(Kind.STRAY_ROW, Kind.FLOOR, Kind.COUNT)
async def store_and_archive_have_both_lost_the_floor(w: Broken) -> None:
    await w.raw.zrem(keys.posts(w.bob), "f")
    w.sql("DELETE FROM fanline_floors WHERE author = ?", w.bob)


@finds(Kind.FLOOR)
async def a_timeline_without_archived_posts_has_lost_its_floor(w: Broken) -> None:
    await w.raw.zrem(keys.posts(w.carol), "f")


@finds(Kind.COUNT)
async def a_count_is_wrong(w: Broken) -> None:
    await w.raw.set(keys.cold(w.bob), 77)


@finds(Kind.COUNT)
async def a_count_is_lost(w: Broken) -> None:
    await w.raw.delete(keys.cold(w.bob))


@finds(Kind.COUNT)
async def somebody_without_archived_posts_has_a_count(w: Broken) -> None:
    await w.raw.set(keys.cold(w.carol), 1)


@finds(Kind.CACHE_LACKS)
async def a_cache_lacks_a_post(w: Broken) -> None:
    await w.raw.zrem(keys.home(w.alice), w.posts[w.bob][-1])


@finds(Kind.CACHE_LACKS)
async def a_cache_claims_to_go_deeper_than_it_does(w: Broken) -> None:
    await w.raw.zadd(keys.home(w.alice), {"f": 0})


@finds(Kind.CACHE_STRANGER)
async def a_cache_holds_a_post_of_a_stranger(w: Broken) -> None:
    post = w.posts[w.dave][-1]
    await w.raw.zadd(keys.home(w.bob), {str(post): post})


@finds(Kind.CACHE_STRANGER)
async def a_cache_merges_a_stranger(w: Broken) -> None:
    await w.raw.zadd(keys.home(w.carol), {f"a{w.dave}": -1})


@finds(Kind.CACHE_UNMARKED)
async def a_cache_does_not_merge_a_large_author(w: Broken) -> None:
    await w.raw.zrem(keys.home(w.alice), f"a{w.star}")


@finds(Kind.CACHE_BROKEN)
async def a_cache_has_no_floor(w: Broken) -> None:
    await w.raw.zrem(keys.home(w.alice), "f")


@finds(Kind.CACHE_BROKEN)
async def a_cache_never_expires(w: Broken) -> None:
    await w.raw.persist(keys.home(w.alice))


@finds(Kind.CACHE_BROKEN)
async def a_cache_has_a_post_in_a_wrong_place(w: Broken) -> None:
    await w.raw.zadd(keys.home(w.alice), {str(w.posts[w.bob][-1]): w.posts[w.carol][-1] + 1})


@finds(Kind.PROFILE)
async def a_profile_is_lost(w: Broken) -> None:
    await w.raw.delete(keys.user(w.carol))


@finds(Kind.FORGOTTEN_PERMISSION)
async def a_permission_is_lost(w: Broken) -> None:
    await w.raw.hdel(keys.user(w.star), keys.permission(Permission.FIREHOSE))


@finds(Kind.FORGOTTEN_PERMISSION)
async def a_revoked_permission_is_back(w: Broken) -> None:
    await w.raw.hset(keys.user(w.alice), keys.permission(Permission.FIREHOSE), w.alice)


@finds(Kind.PROFILE, Kind.FORGOTTEN_PERMISSION)
async def a_profile_is_lost_with_a_permission(w: Broken) -> None:
    await w.raw.delete(keys.user(w.star))


@finds(Kind.PROFILE)
async def a_profile_lacks_its_name(w: Broken) -> None:
    await w.raw.hdel(keys.user(w.carol), "name")
