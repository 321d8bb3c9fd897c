"""NVMe-sharing model: shipped tables, speed changes, and table files."""

import warnings

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.policies.placement.nvme.policies import NvmeMaximizeComposition
from poolwise.quantities import SECOND
from poolwise.schedulers.composition import CompositionScheduler
from tests.helpers.nvme_examples import SHARING, SMUFIN, machine, workload


def test_shipped_tables_match_the_paper():
    assert SMUFIN.time(1, 1) == 1489.15
    assert SMUFIN.time(2, 6) == 1835.62
    assert SMUFIN.time(9, 4) == 1550.5
    assert SMUFIN.sharers == 6
    fio = SharingTable.read("catalog:nvme-fio.csv")
    assert all(fio.time(k, s) == 900 * s / min(k, 3) for k in range(1, 6) for s in range(1, 13))


@pytest.mark.parametrize("frozen", [False, True])
def test_remaining_work_continues_at_the_new_rate(frozen):
    """Two SMUFIN on one device, the second 700 s later: a rate of 1600 / 1489.15 alone, 1600 / 1601.25 together."""
    jobs = workload([(0, "smufin"), (700, "smufin")])
    model = NvmeSharing(SHARING.tables, fixed_at_start=frozen)
    scheduler = CompositionScheduler(placement=NvmeMaximizeComposition())
    schedule = simulate(jobs, machine(devices=((2000, 600),)), scheduler, model=model).schedule
    if frozen:
        ends = [1489.15, 700 + 1601.25]
    else:
        first = 700 + (1 - 700 / 1489.15) * 1601.25
        ends = [first, first + (1 - (first - 700) / 1601.25) * 1489.15]
    assert np.allclose(schedule.job_end / SECOND, ends, rtol=0, atol=1e-6)


def test_too_many_sharers_is_a_policy_error():
    from poolwise.performance.nvme_sharing import relative

    with pytest.raises(PolicyError, match="at most 6"):
        relative(SMUFIN, 1, 7, 1600 * SECOND)


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("devices,1,2\n1,10,x\n", 2, "devices=1, sharers=2"),
        ("devices,1,2\n1,10,20\n2,10,-1\n", 3, "devices=2, sharers=2"),
        ("devices,1,2\n1,10,nan\n", 2, "devices=1, sharers=2"),
        ("devices,1,2\n# note\n1,0,20\n", 3, "devices=1, sharers=1"),
        ("devices,1,2\n1,10\n", 2, "devices=1"),
        ("devices,1,2\n2,10,20\n", 2, "devices"),
        ("devices,1,3\n1,10,20\n", 1, "devices"),
        ("devices\n1\n", 1, "devices"),
    ],
)
def test_invalid_table_is_rejected_with_the_cell(tmp_path, text, line, field):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        SharingTable.read(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, line, field)


def test_table_that_falls_with_more_sharers_causes_a_warning(tmp_path):
    path = tmp_path / "falls.csv"
    path.write_text("devices,1,2,3\n1,100,98.1,96\n")
    with pytest.warns(UserWarning, match="devices=1, sharers=3: 2.1 % faster"):
        SharingTable.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SharingTable.read("catalog:nvme-smufin.csv")  # falls by 1.1 % on three devices, which is tolerated


def test_missing_tables_are_named():
    with pytest.raises(InputError, match="performance table not found"):
        SharingTable.read("nowhere.csv")
    with pytest.raises(InputError, match="nvme-smufin"):
        SharingTable.read("catalog:nvme-smuffin.csv")
