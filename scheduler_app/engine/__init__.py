"""The pure core: plain values in, a verdict with its reason out. No Django, no clock, no I/O."""
