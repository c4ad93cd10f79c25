"""Ways to damage the store, each with the kinds of difference that a check must find."""

import time
from collections.abc import Awaitable, Callable

from graph import keys
from graph.model import Permission
from graph.repair import defects
from graph.repair.defects import Defect
from tests.graph.repair.broken import DAY, RepairWorld

Damage = Callable[[RepairWorld], Awaitable[None]]
DAMAGES: dict[str, tuple[Damage, set[Defect]]] = {}
"""Ways to damage the store, by name, with the kinds of difference that a check must find."""


def finds(*kinds: Defect) -> Callable[[Damage], Damage]:
    """Register a way to damage the store, with the kinds of difference that it causes."""

    def register(damage: Damage) -> Damage:
        DAMAGES[damage.__name__] = damage, set(kinds)
        return damage

    return register


@finds(defects.PROFILE_WRONG)
async def a_profile_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.user(w.star))


@finds(defects.PROFILE_WRONG)
async def a_profile_has_lost_its_name(w: RepairWorld) -> None:
    await w.raw.hdel(keys.user(w.carol), "name")


@finds(defects.PROFILE_WRONG)
async def a_change_of_a_name_is_lost(w: RepairWorld) -> None:
    await w.raw.hset(keys.user(w.carol), mapping={"name": w.login(2), "name:at": w.carol})


@finds(defects.PROFILE_WRONG)
async def a_permission_is_lost(w: RepairWorld) -> None:
    await w.raw.hdel(keys.user(w.star), keys.permission(Permission.FIREHOSE))


@finds(defects.PROFILE_WRONG)
async def a_revocation_is_lost(w: RepairWorld) -> None:
    await w.raw.hset(keys.user(w.alice), keys.permission(Permission.FIREHOSE), w.alice)


@finds(defects.PROFILE_WRONG)
async def a_permission_was_never_granted(w: RepairWorld) -> None:
    await w.raw.hset(keys.user(w.dave), keys.permission(Permission.FIREHOSE), w.dave)


@finds(defects.LOGIN_WRONG)
async def a_login_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.login(w.login(2)))


@finds(defects.LOGIN_WRONG)
async def a_login_is_claimed_again(w: RepairWorld) -> None:
    await w.raw.delete(keys.login(w.login(2)))
    await w.graph.users.claim_many([(w.login(2), "another claim", None)])


@finds(defects.LOGIN_WRONG)
async def a_login_belongs_to_another_user(w: RepairWorld) -> None:
    await w.raw.hset(keys.login(w.login(3)), "user", w.alice)


@finds(defects.LOGIN_WRONG)
async def a_password_hash_is_wrong(w: RepairWorld) -> None:
    await w.raw.hset(keys.login(w.login(2)), "secret", "another hash")


@finds(defects.LOGIN_WRONG)
async def a_change_of_a_password_is_lost(w: RepairWorld) -> None:
    await w.raw.hset(keys.login(w.login(2)), "secret", "the former hash")
    await w.raw.hdel(keys.login(w.login(2)), "secret:at")


@finds(defects.PROFILE_WRONG)
async def the_number_of_a_change_of_a_password_is_lost(w: RepairWorld) -> None:
    await w.raw.hdel(keys.user(w.carol), "password")


@finds(defects.SESSION_LIVE)
async def an_ended_session_is_live(w: RepairWorld) -> None:
    await w.raw.hset(keys.sessions(w.carol), w.session, int(time.time()) + DAY)


@finds(defects.FOLLOW_WRONG)
async def a_follower_is_lost(w: RepairWorld) -> None:
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(defects.FOLLOW_WRONG)
async def a_follower_below_the_tombstone_floor_is_lost(w: RepairWorld) -> None:
    await w.raw.zadd(keys.gone(keys.followers(w.bob)), {"f": await w.graph.log.last()})
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(defects.FOLLOW_WRONG)
async def all_followers_are_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.followers(w.star))


@finds(defects.FOLLOW_WRONG, defects.CACHE_WRONG)
async def a_followee_is_lost(w: RepairWorld) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)


@finds(defects.FOLLOW_WRONG, defects.CACHE_WRONG)
async def all_followees_are_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.following(w.alice))


@finds(defects.FOLLOW_WRONG, defects.CACHE_WRONG)
async def a_follow_is_lost(w: RepairWorld) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)
    await w.raw.zrem(keys.followers(w.bob), w.alice)


@finds(defects.FOLLOW_WRONG, defects.CACHE_WRONG)
async def a_tombstone_stands_for_a_follow(w: RepairWorld) -> None:
    await w.raw.zrem(keys.following(w.alice), w.bob)
    await w.raw.zadd(keys.gone(keys.following(w.alice)), {str(w.bob): await w.graph.log.last()})


@finds(defects.FOLLOW_WRONG, defects.CACHE_WRONG)
async def an_unfollow_is_lost(w: RepairWorld) -> None:
    for key, member in ((keys.following(w.dave), w.star), (keys.followers(w.star), w.dave)):
        await w.raw.delete(keys.gone(key))
        await w.raw.zadd(key, {str(member): 1})


@finds(defects.FOLLOW_WRONG)
async def an_unfollow_is_lost_on_one_side(w: RepairWorld) -> None:
    await w.raw.zrem(keys.gone(keys.followers(w.star)), w.dave)
    await w.raw.zadd(keys.followers(w.star), {str(w.dave): 1})


@finds(defects.FOLLOW_WRONG)
async def a_follow_has_a_wrong_number(w: RepairWorld) -> None:
    await w.raw.zadd(keys.following(w.alice), {str(w.bob): await w.graph.log.last()})


@finds(defects.FOLLOW_WRONG)
async def a_followee_has_no_event(w: RepairWorld) -> None:
    await w.raw.zadd(keys.following(w.bob), {str(w.alice): 1})


@finds(defects.FOLLOW_WRONG)
async def a_follower_has_no_event(w: RepairWorld) -> None:
    await w.raw.zadd(keys.followers(w.alice), {str(w.bob): 1})


@finds(defects.POST_UNLISTED, defects.RECORD_WRONG)
async def a_post_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.post(w.posts[w.bob][-1]))
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])


@finds(defects.POST_UNLISTED)
async def a_post_is_not_listed(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.carol), w.posts[w.carol][0])


@finds(defects.POST_UNLISTED)
async def a_post_below_the_tombstone_floor_is_not_listed(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])
    await w.raw.zadd(keys.gone(keys.posts(w.bob)), {"f": await w.graph.log.last()})


@finds(defects.POST_UNLISTED)
async def a_post_is_listed_in_a_wrong_position(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.carol), {str(w.posts[w.carol][0]): w.posts[w.carol][1] + 1})


@finds(defects.FLOOR_WRONG, defects.POST_UNLISTED)
async def a_timeline_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.posts(w.carol))


@finds(defects.FLOOR_WRONG, defects.COUNT_WRONG, defects.POST_UNLISTED, defects.RECORD_WRONG)
async def a_timeline_with_archived_posts_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.posts(w.bob))


@finds(defects.FLOOR_WRONG, defects.POST_UNLISTED)
async def a_lost_timeline_has_new_posts(w: RepairWorld) -> None:
    await w.raw.delete(keys.posts(w.bob))
    w.posts[w.bob].append((await w.graph.posts.publish(w.bob, "after the loss")).id)
    await w.drain()


@finds(defects.FLOOR_WRONG, defects.COUNT_WRONG, defects.POST_UNLISTED, defects.RECORD_WRONG)
async def a_floor_is_lost(w: RepairWorld) -> None:
    await w.raw.zrem(keys.posts(w.bob), "f")


@finds(defects.FLOOR_WRONG, defects.COUNT_WRONG, defects.POST_UNLISTED, defects.RECORD_WRONG)
async def a_floor_is_too_low(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.bob), {"f": 0})


@finds(defects.COUNT_WRONG, defects.POST_LISTED)
async def a_floor_is_too_high(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.bob), {"f": w.posts[w.bob][-1] - 1})


@finds(defects.RECORD_WRONG)
async def a_record_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.post(w.posts[w.bob][-1]))


@finds(defects.RECORD_WRONG)
async def a_record_has_no_text(w: RepairWorld) -> None:
    await w.raw.hdel(keys.post(w.posts[w.carol][0]), "text")


@finds(defects.RECORD_WRONG)
async def a_record_has_a_wrong_text(w: RepairWorld) -> None:
    await w.raw.hset(keys.post(w.posts[w.carol][0]), "text", "a wrong text")


@finds(defects.POST_LISTED)
async def a_deleted_post_is_listed(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.bob), {str(w.deleted[1]): w.deleted[1]})


@finds(defects.POST_LISTED, defects.RECORD_LEFT, defects.CACHE_WRONG)
async def a_deletion_is_lost(w: RepairWorld) -> None:
    post = w.deleted[1]
    await w.raw.delete(keys.post(post), keys.gone(keys.posts(w.bob)))
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "back"})
    await w.raw.zadd(keys.posts(w.bob), {str(post): post})


@finds(defects.RECORD_LEFT)
async def a_deleted_post_has_a_record(w: RepairWorld) -> None:
    await w.raw.delete(keys.post(w.deleted[1]))
    await w.raw.hset(keys.post(w.deleted[1]), mapping={"id": w.deleted[1], "author": w.bob, "text": "back"})


@finds(defects.POST_LISTED)
async def a_post_is_listed_for_another_author(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.carol), {str(w.posts[w.alice][0]): w.posts[w.alice][0]})


@finds(defects.POST_LISTED)
async def an_archived_post_is_listed(w: RepairWorld) -> None:
    await w.raw.zadd(keys.posts(w.bob), {str(w.posts[w.bob][2]): w.posts[w.bob][2]})


@finds(defects.RECORD_LEFT)
async def an_archived_post_has_a_record(w: RepairWorld) -> None:
    post = w.posts[w.bob][2]
    await w.raw.hset(keys.post(post), mapping={"id": post, "author": w.bob, "text": "number 3"})


@finds(defects.RECORD_LEFT)
async def an_archived_post_has_a_partial_record(w: RepairWorld) -> None:
    await w.raw.hset(keys.post(w.posts[w.bob][2]), "text", "number 3")


@finds(defects.POST_UNKNOWN, defects.PUBLIC_WRONG)
async def the_archive_has_lost_a_hot_post(w: RepairWorld) -> None:
    w.sql("DELETE FROM events WHERE number = ?", w.posts[w.bob][-1])


@finds(defects.POST_UNKNOWN, defects.PUBLIC_WRONG)
async def the_archive_and_the_timeline_have_lost_a_post(w: RepairWorld) -> None:
    w.sql("DELETE FROM events WHERE number = ?", w.posts[w.bob][-1])
    await w.raw.zrem(keys.posts(w.bob), w.posts[w.bob][-1])


@finds(defects.POST_UNKNOWN, defects.PUBLIC_WRONG)
async def a_post_is_left_in_a_timeline_only(w: RepairWorld) -> None:
    lost = w.posts[w.carol].pop()
    w.sql("DELETE FROM events WHERE number = ?", lost)
    await w.raw.delete(keys.post(lost))


@finds(defects.POST_UNKNOWN)
async def an_unreadable_record_is_unknown(w: RepairWorld) -> None:
    await w.raw.hset(keys.post(w.unused), "text", "what is left")


@finds(defects.DELETION_UNKNOWN, defects.PUBLIC_WRONG)
async def the_archive_has_lost_the_deletion_of_a_hot_post(w: RepairWorld) -> None:
    await undelete(w, w.posts[w.bob].pop(-2))


@finds(defects.DELETION_UNKNOWN, defects.PUBLIC_WRONG)
async def the_archive_has_lost_the_deletion_of_an_archived_post(w: RepairWorld) -> None:
    await undelete(w, w.posts[w.bob].pop(2))


@finds(defects.DELETION_UNKNOWN)
async def only_the_record_of_a_hot_post_is_a_tombstone(w: RepairWorld) -> None:
    await bury(w, w.posts[w.bob].pop())


@finds(defects.DELETION_UNKNOWN)
async def only_the_record_of_an_archived_post_is_a_tombstone(w: RepairWorld) -> None:
    await bury(w, w.posts[w.bob].pop(2))


async def undelete(w: RepairWorld, post: int) -> None:
    """Delete a post by bob, and remove the deletion from the archive."""
    [(kind, body)] = w.sql("SELECT kind, body FROM events WHERE number = ?", post)
    await w.graph.posts.delete(w.bob, post)
    await w.drain()
    w.sql("DELETE FROM events WHERE subject = ? AND kind = 'PostDeleted'", post)
    update = "UPDATE events SET kind = ?, body = ?, listed_by = actor WHERE number = ?"
    w.sql(update, kind, body, post)
    await w.raw.delete(keys.idempotency("-", f"deletion:{post}"))


async def bury(w: RepairWorld, post: int) -> None:
    """Replace the record of a post by a tombstone."""
    await w.raw.delete(keys.post(post))
    await w.raw.hset(keys.post(post), "deleted", await w.graph.log.last())


@finds(defects.COUNT_WRONG)
async def a_count_is_wrong(w: RepairWorld) -> None:
    await w.raw.set(keys.cold(w.bob), 77)


@finds(defects.COUNT_WRONG)
async def a_count_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.cold(w.bob))


@finds(defects.COUNT_WRONG)
async def an_author_without_archived_posts_has_a_count(w: RepairWorld) -> None:
    await w.raw.set(keys.cold(w.carol), 1)


@finds(defects.CACHE_WRONG)
async def a_post_is_missing_in_a_cache(w: RepairWorld) -> None:
    await w.raw.zrem(keys.home(w.alice), w.posts[w.bob][-1])


@finds(defects.CACHE_WRONG)
async def a_cache_has_too_low_a_floor(w: RepairWorld) -> None:
    await w.raw.zadd(keys.home(w.alice), {"f": 0})


@finds(defects.CACHE_WRONG)
async def a_cache_holds_a_post_of_an_author_who_is_not_followed(w: RepairWorld) -> None:
    post = w.posts[w.dave][-1]
    await w.raw.zadd(keys.home(w.bob), {str(post): post})


@finds(defects.CACHE_WRONG)
async def a_cache_has_a_mark_for_an_author_who_is_not_followed(w: RepairWorld) -> None:
    await w.raw.zadd(keys.home(w.carol), {f"a{w.dave}": -1})


@finds(defects.CACHE_WRONG)
async def a_cache_has_no_mark_for_an_author_who_is_not_pushed(w: RepairWorld) -> None:
    await w.raw.zrem(keys.home(w.alice), f"a{w.star}")


@finds(defects.CACHE_WRONG)
async def a_cache_has_no_floor(w: RepairWorld) -> None:
    await w.raw.zrem(keys.home(w.alice), "f")


@finds(defects.CACHE_WRONG)
async def a_cache_never_expires(w: RepairWorld) -> None:
    await w.raw.persist(keys.home(w.alice))


@finds(defects.CACHE_WRONG)
async def a_cache_has_a_post_in_a_wrong_position(w: RepairWorld) -> None:
    await w.raw.zadd(keys.home(w.alice), {str(w.posts[w.bob][-1]): w.posts[w.carol][-1] + 1})
