"""Generated profiles: names, bios, cities, and the distributions of popularity and activity.

Popularity follows a power law with exponent 3, as in preferential attachment (Barabási and Albert, 1999). It is
computed from a user's rank, so memory does not grow with the number of users.
"""

from dataclasses import dataclass
from random import Random

from server.demo.phrases import Voice
from server.demo.phrases.chinese import CHINESE
from server.demo.phrases.english import ENGLISH
from server.demo.world import Person


@dataclass(frozen=True, slots=True)
class City:
    """A city: latitude and longitude in degrees, and its offset from UTC in hours."""

    latitude: float
    longitude: float
    hours: int


@dataclass(frozen=True, slots=True)
class Character:
    """How a user writes: languages, topics of the first language, and city."""

    voices: tuple[Voice, ...]
    topics: tuple[str, ...]
    city: City


CITIES = {
    "London": City(51.507, -0.128, 0),
    "Berlin": City(52.520, 13.405, 1),
    "Lisbon": City(38.722, -9.139, 0),
    "New York": City(40.713, -74.006, -5),
    "Toronto": City(43.651, -79.383, -5),
    "Sydney": City(-33.869, 151.209, 10),
    "Beijing": City(39.904, 116.407, 8),
    "Shanghai": City(31.230, 121.474, 8),
    "Hangzhou": City(30.274, 120.155, 8),
    "Chengdu": City(30.573, 104.066, 8),
    "Guangzhou": City(23.129, 113.264, 8),
    "Xi'an": City(34.341, 108.940, 8),
}
ENGLISH_CITIES = ("London", "Berlin", "Lisbon", "New York", "Toronto", "Sydney")
CHINESE_CITIES = ("Beijing", "Shanghai", "Hangzhou", "Chengdu", "Guangzhou", "Xi'an")

FIRST_NAMES = (
    "Mia", "Oliver", "Nora", "Jack", "Priya", "Liam", "Zoe", "Marek", "Ana", "Tom", "Ines", "Kofi",
    "Ruth", "Sam", "Lena", "Omar", "Freya", "Hugo", "Grace", "Ivan", "Julia", "Ken", "Leila", "Max",
    "Nina", "Otto", "Paula", "Rosa", "Sean", "Tara", "Ugo", "Vera", "Will", "Yara", "Aidan", "Bella",
    "Cyrus", "Dora", "Emil", "Flora",
)  # fmt: skip
LAST_NAMES = (
    "Moore", "Silva", "Novak", "Baker", "Okafor", "Lindqvist", "Rossi", "Walsh", "Kaplan", "Murray",
    "Sato", "Keller", "Dubois", "Patel", "Fischer", "Quinn", "Santos", "Weber", "Young", "Adler",
    "Brandt", "Costa", "Doyle", "Evans", "Ford", "Greene", "Haas", "Ito", "Jensen", "Kovac",
)  # fmt: skip
SURNAMES = (
    ("王", "wang"), ("李", "li"), ("张", "zhang"), ("刘", "liu"), ("陈", "chen"), ("杨", "yang"),
    ("黄", "huang"), ("赵", "zhao"), ("周", "zhou"), ("吴", "wu"), ("徐", "xu"), ("孙", "sun"),
    ("朱", "zhu"), ("林", "lin"), ("何", "he"), ("郭", "guo"), ("高", "gao"), ("罗", "luo"),
    ("梁", "liang"), ("宋", "song"),
)  # fmt: skip
GIVEN_NAMES = (
    ("芳", "fang"), ("娜", "na"), ("敏", "min"), ("静", "jing"), ("强", "qiang"), ("磊", "lei"),
    ("洋", "yang"), ("艳", "yan"), ("勇", "yong"), ("杰", "jie"), ("娟", "juan"), ("涛", "tao"),
    ("亮", "liang"), ("超", "chao"), ("秀英", "xiuying"), ("霞", "xia"), ("平", "ping"),
    ("桂英", "guiying"), ("子涵", "zihan"), ("雨桐", "yutong"), ("浩然", "haoran"), ("思远", "siyuan"),
    ("欣怡", "xinyi"), ("梓萱", "zixuan"), ("晨曦", "chenxi"), ("一诺", "yinuo"), ("佳琪", "jiaqi"),
    ("博文", "bowen"), ("若曦", "ruoxi"), ("天佑", "tianyou"),
)  # fmt: skip

ENGLISH_BIOS = (
    "{a} and {b}. Opinions are my cat's.",
    "Mostly {a}, sometimes {b}.",
    "Here for the {a}.",
    "{a} by day, {b} by night.",
    "",
    "Slow reader, fast walker. {a}.",
    "I came for {a} and stayed for the people.",
)
CHINESE_BIOS = (
    "喜欢{a}和{b}。",
    "{a}爱好者，偶尔{b}。",
    "慢慢来，比较快。",
    "",
    "记录生活，{a}为主。",
    "不太会说话，但是喜欢{a}。",
)
CHINESE_WORDS = {
    "coffee": "咖啡", "code": "写代码", "running": "跑步", "cats": "撸猫", "books": "读书", "music": "音乐",
    "film": "电影", "food": "美食", "travel": "旅行", "photo": "摄影", "study": "学习", "work": "上班",
    "weather": "看云", "football": "足球",
}  # fmt: skip


def character(random: Random) -> Character:
    """Return a random character. Half of all characters write Chinese, and some write both languages."""
    home, other = (CHINESE, ENGLISH) if random.random() < 0.5 else (ENGLISH, CHINESE)
    city = random.choice(CHINESE_CITIES if home is CHINESE else ENGLISH_CITIES)
    topics = tuple(random.sample(home.topics, random.randint(2, 4)))
    return Character((home, other) if random.random() < 0.12 else (home,), topics, CITIES[city])


def generated_profile(who: Character, random: Random) -> Person:
    """Return a random profile. Its login is not necessarily unique."""
    first, second = who.topics[:2]
    if who.voices[0] is CHINESE:
        surname, given = random.choice(SURNAMES), random.choice(GIVEN_NAMES)
        login = random.choice((f"{surname[1]}{given[1]}", f"{given[1]}_{surname[1]}", f"xiao{given[1]}"))
        bio = random.choice(CHINESE_BIOS).format(a=CHINESE_WORDS[first], b=CHINESE_WORDS[second])
        return Person(login, surname[0] + given[0], bio)
    name, surname_ = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
    login = random.choice((f"{name}{surname_}", f"{name}_{surname_}", f"{name[0]}{surname_}", f"{surname_}{name}"))
    bio = random.choice(ENGLISH_BIOS).format(a=first, b=second)
    return Person(login.lower(), f"{name} {surname_}", bio[:1].upper() + bio[1:])


def rank_by_popularity(random: Random, size: int) -> int:
    """Return a random popularity rank below `size`, lower ranks more often; 0 is the most popular."""
    return int(size * random.random() ** 2)


def following_count(random: Random, mean: float, limit: int) -> int:
    """Return a random number of users for a user to follow: usually few, sometimes many, `mean` on average."""
    return min(limit, int(mean / 2 * random.paretovariate(2) + 0.5))
