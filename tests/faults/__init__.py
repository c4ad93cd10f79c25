"""Faults: processes killed for real between store calls, with what must hold afterwards."""
