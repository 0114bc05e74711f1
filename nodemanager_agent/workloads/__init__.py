"""Training scripts as users write them, for live comparisons: nothing in them knows who schedules them."""
