"""The life of one worker on its node as one table (DESIGN §5; G-10): pure, no I/O, no clock."""
