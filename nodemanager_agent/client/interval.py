"""When a checkpoint is due. Pure arithmetic; no framework."""


class Interval:
    """When the next checkpoint is due.

    Args:
        every: mini-batches from one to the next (case B03: 50).
        step: mini-batches done when the newest one was written.
    """

    def __init__(self, every: int, step: int = 0) -> None:
        self.every = max(1, every)
        self.step = step

    def is_due(self, step: int) -> bool:
        """Whether a multiple of `every` lies behind the last one; steps may come in leaps."""
        return step // self.every > self.step // self.every

    def written(self, step: int) -> None:
        """One was written."""
        self.step = step

    def lost(self, step: int) -> int:
        """Mini-batches that a failure at this step costs."""
        return max(0, step - self.step)
