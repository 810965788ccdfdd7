"""A small world on a virtual clock: schedulers, attempts and people, one step at a time, from one seed (design §8)."""
