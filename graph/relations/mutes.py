"""Mutes: users whose posts a user does not want to see. Only the user who mutes sees them."""

from graph import keys
from graph.log.pair_events import Muted, Unmuted
from graph.relations.pair_sets import PairSet

MUTES = PairSet("mute", Muted, Unmuted, keys.muting, drops_home=True)
