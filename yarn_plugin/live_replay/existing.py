"""An arm on a cluster that is there: jobs are submitted as any user's, and nothing else is started or stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gandiva_core.replay.live import ArmRun
from gandiva_core.replay.provenance import commit
from yarn_plugin.live_replay.arm import Replay, Say, Submission
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.site import Site


def run_arm(
    site: Site,
    jobs: Sequence[LiveJob],
    submission: Submission,
    limit_s: float,
    out: Path,
    say: Say,
) -> ArmRun:
    """Play the jobs. Interrupted, or at the end of its time, it tells of those that go on; they are the user's to end.

    Raises:
        LiveReplayError: it did not end within its limit, or a submission was refused.
    """
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with Replay(site, submission, logs, say) as replay:
        try:
            replay.play(jobs, limit_s)
        except BaseException:
            if replay.going_on():
                say(
                    f"these go on, `yarn application -kill` ends them: {' '.join(replay.going_on())}"
                )
            raise
    return ArmRun(
        arm=site.arm,
        jobs=replay.runs(jobs),
        headroom_ratio=None,
        scheduler_class=site.scheduler_class,
        hadoop_version=site.hadoop_version,
        settings=site.settings,
        commit=commit(),
    )
