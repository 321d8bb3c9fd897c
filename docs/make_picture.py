"""Makes docs/images/cerit-pools.svg, the chart that carries the answer of the study `cerit-pools`; `make picture` runs it."""

from pathlib import Path

from poolwise import catalog, studies
from poolwise.atomic import write_whole
from poolwise.report.picture import picture
from poolwise.report.study import study_page
from poolwise.report.theme import style_sheet

FOLDER = Path("results/cerit-pools")
IMAGE = Path(__file__).parent / "images" / "cerit-pools.svg"


def main() -> None:
    """Run the study, as far as it has not run, and draw."""
    result = studies.run(studies.load(catalog.find("studies", "cerit-pools")), FOLDER)
    shown = study_page(result, ()).main
    assert shown is not None  # the study varies a size
    drawn = picture(shown, wide=True)
    at = drawn.index(">") + 1
    back = "svg { background: var(--paper); }"
    write_whole(IMAGE, f"{drawn[:at]}<style>{style_sheet()} {back}</style>{drawn[at:]}\n".encode())


if __name__ == "__main__":
    main()
