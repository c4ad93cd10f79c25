"""A Strawberry schema with records, batches, references and interfaces, over random, partly faulty data."""

import asyncio
import enum
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import strawberry

from executor.fields import OfRecord, batched, single


class Grade(enum.Enum):
    GOOD = "good"
    BAD = "bad"


GRADE = strawberry.enum(Grade)


@dataclass(eq=False)
class MakerRecord:
    number: int
    name: Any
    age: Any
    grade: Any


@dataclass(frozen=True)
class MakerReference:
    """A reference to a maker."""

    number: int


@dataclass(eq=False)
class BookRecord:
    title: Any
    price: Any
    pages: Any
    author: Any
    tags: Any


@dataclass(eq=False)
class ToyRecord:
    title: Any
    price: Any
    made_by: Any
    owner: Any

    @property
    def broken(self) -> str:
        """Raise an error for some makers."""
        if self.price is None:
            raise LookupError("a toy without a price")
        return "whole"


@dataclass(eq=False)
class ShopRecord:
    name: Any
    items: Any
    best: Any
    owner: Any


class Stock:
    """Random data: mostly valid, sometimes null, an error or of the wrong type. Some objects occur twice."""

    def __init__(self, seed: int, faults: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a test's data
        self._faults = faults
        self._makers = [self._maker(number) for number in range(4)]
        self._items = [self._item() for _ in range(5)]
        self.shops = [self._shop() for _ in range(3)]
        self.shop = self._or_wrong(self.shops[0])
        self.listed = self._or_wrong([self._or_wrong(self._random.choice(self.shops)) for _ in range(3)])

    def _or_wrong(self, right: Any, *wrong: Any) -> Any:
        if self._random.randrange(100) >= self._faults:
            return right
        return self._random.choice((None, None, LookupError("gone"), "wrong", 7, *wrong))

    def _maker(self, number: int) -> MakerRecord:
        age = self._or_wrong(30 + number, 2**31, True, "40", 1.5)
        return MakerRecord(number, self._or_wrong(f"maker {number}", 1.5, []), age, self._or_wrong(Grade.GOOD, "good"))

    def _item(self) -> Any:
        maker = self._or_wrong(self._random.choice(self._makers), MakerReference(9))
        title, price = self._or_wrong("title", []), self._or_wrong(2.5, float("nan"), 3, "4.5")
        if self._random.randrange(2):
            makers = [self._or_wrong(self._random.choice(self._makers)) for _ in range(self._random.randrange(3))]
            return ToyRecord(title, price, self._or_wrong(makers, tuple(makers)), maker)
        tags = [self._or_wrong("tag", 5) for _ in range(self._random.randrange(3))]
        return BookRecord(title, price, self._or_wrong(100, -1), maker, self._or_wrong(tags, tuple(tags)))

    def _shop(self) -> ShopRecord:
        items = [self._or_wrong(self._random.choice(self._items)) for _ in range(self._random.randrange(4))]
        owner = self._or_wrong(self._random.choice(self._makers))
        best = self._or_wrong(self._random.choice(self._items), owner)
        return ShopRecord(self._or_wrong("shop"), self._or_wrong(items), best, owner)


def attribute_resolver(name: str, *, asynchronous: bool) -> Callable[..., Any]:
    """Return a batch resolver for an attribute of its parents, synchronous or not."""

    def at_once(parents: Sequence[Any], context: Stock) -> list[Any]:
        return [getattr(parent, name) for parent in parents]

    async def later(parents: Sequence[Any], context: Stock) -> list[Any]:
        await asyncio.sleep(0)
        return at_once(parents, context)

    return later if asynchronous else at_once


def references_of(name: str) -> Callable[..., Any]:
    """Return a function that returns references to the makers in an attribute."""

    def refer(parents: Sequence[Any], context: Stock) -> list[MakerReference | None]:
        makers = [getattr(parent, name) for parent in parents]
        return [MakerReference(maker.number) if isinstance(maker, MakerRecord) else None for maker in makers]

    return refer


def labels(*, asynchronous: bool) -> Callable[..., Any]:
    """Return a batch resolver that needs only the number of a maker."""

    def at_once(makers: Sequence[Any], context: Stock, *, n: int = 1, of: Annotated[Grade, GRADE] | None = None) -> Any:
        return [LookupError("no label") if maker.number == 3 else f"{maker.number} {n} {of}" for maker in makers]

    async def later(makers: Sequence[Any], context: Stock, *, n: int = 1, of: Grade | None = None) -> list[Any]:
        await asyncio.sleep(0)
        return list(at_once(makers, context, n=n, of=of))

    at_once.__annotations__["of"] = Grade | None
    return later if asynchronous else at_once


def roots(*, asynchronous: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the resolvers of the root fields."""

    def shop(context: Stock) -> Any:
        if isinstance(context.shop, Exception):
            raise context.shop
        return context.shop

    def shops(context: Stock) -> Any:
        return context.listed

    async def shop_later(context: Stock) -> Any:
        await asyncio.sleep(0)
        return shop(context)

    async def shops_later(context: Stock) -> Any:
        return shops(context)

    return (shop_later, shops_later) if asynchronous else (shop, shops)


def shop_schema(*, asynchronous: bool) -> strawberry.Schema:
    """Return the schema, with asynchronous or with synchronous resolvers."""

    def field(name: str, **options: Any) -> Any:
        return batched(attribute_resolver(name, asynchronous=asynchronous), description=name, **options)

    @strawberry.type
    class Maker(OfRecord):
        record = MakerRecord
        name: str
        age: int | None
        grade: Grade | None
        label: str = batched(labels(asynchronous=asynchronous), description="label", needs_only_reference=True)
        soft_label: str | None = batched(labels(asynchronous=False), description="label", needs_only_reference=True)

    @strawberry.interface
    class Item(OfRecord):
        title: str
        price: float | None

    @strawberry.type
    class Book(Item):
        record = BookRecord
        pages: int
        author: Maker | None
        tags: list[str | None]

    @strawberry.type
    class Toy(Item):
        record = ToyRecord
        broken: str | None
        makers: list[Maker] | None = field("made_by")
        owner: Maker = field("owner", references=references_of("owner"))

    @strawberry.type
    class Shop(OfRecord):
        record = ShopRecord
        name: str | None
        items: list[Item | None] = field("items")
        best: Item | None = field("best")
        owner: Maker | None = field("owner", references=references_of("owner"))
        thing: Annotated[Book | Toy, strawberry.union("Thing")] | None = field("best")

    one, all_ = roots(asynchronous=asynchronous)

    @strawberry.type
    class Query:
        shop: Shop | None = single(one, description="shop")
        shops: list[Shop | None] | None = single(all_, description="shops")

    return strawberry.Schema(Query, types=[Book, Toy])
