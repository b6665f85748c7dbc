"""The numbers that the paper prints (KDD 2024), and nothing else: none is ours."""

METHODS = ("SSRL", "SBRL", "CORELS*", "CLASSY", "IDRS", "RIPPER")
Number = tuple[float, float]
"""Mean and standard deviation over ten folds."""


def _numbers(text: str) -> dict[str, dict[str, tuple[Number, ...]]]:
    """Lines of a name and of pairs; a cell is a pair, or two of them (rules and literals)."""
    table: dict[str, dict[str, tuple[Number, ...]]] = {}
    for line in text.strip().splitlines():
        name, *cells = line.split(" | ")
        methods = (
            METHODS
            if len(cells) == len(METHODS)
            else [m for m in METHODS if m not in ("CORELS*", "IDRS")]
        )
        pairs = [
            tuple((float(a), float(b)) for a, b in (p.split("(") for p in cell.split()))
            for cell in cells
        ]
        table[name.strip()] = dict(zip(methods, pairs, strict=True))
    return table


ACCURACY = _numbers("""
FICO-binary   | 72.03(0.7 | 71.21(1.0 | 70.70(0.8 | 71.78(1.5 | 71.2(1.1 | 60.1(1.2
FICO          | 71.90(1.5 | 70.37(1.2 | 69.86(1.1 | 70.83(1.5 | 70.4(1.4 | 69.1(1.9
WDBC          | 95.79(3.6 | 92.98(4.1 | 94.39(4.1 | 94.73(3.3 | 94.0(4.8 | 94.7(1.6
gas           | 98.63(0.2 | 95.26(0.6 | 87.72(1.4 | 99.01(0.3 | 98.2(0.4 | 99.0(0.4
magic         | 86.28(0.6 | 81.66(0.9 | 81.27(0.8 | 85.79(0.5 | 84.6(0.8 | 82.2(1.3
adult         | 84.31(0.7 | 83.76(0.5 | 82.94(0.6 | 83.97(0.6 | 84.4(0.6 | 83.3(0.9
COMPAS-binary | 67.12(1.4 | 66.21(1.4 | 66.60(1.3 | 66.72(1.5 | 67.0(1.5 | 56.0(0.6
iris          | 98.0(3.1 | 98.0(3.2 | 98.0(3.2 | 98.0(3.2
cmc           | 55.26(3.2 | 52.75(3.1 | 53.29(4.0 | 51.73(4.0
cardio        | 90.40(2.0 | 89.27(2.5 | 90.12(1.9 | 89.70(1.8
page-blocks   | 96.86(0.6 | 95.69(0.8 | 96.58(0.7 | 96.51(0.7
dry-bean      | 90.98(0.6 | 89.32(0.4 | 88.87(0.8 | 91.04(0.9
pendigits     | 96.23(0.5 | 89.42(0.7 | 95.49(0.8 | 96.47(0.5
""")
"""Tables 4 and 5, per cent."""

SIZES = _numbers("""
FICO-binary   | 7.3(1.7 18.4(4.2 | 14.4(0.8 23.2(1.8 | 4.5(0.7 14.9(2.4 | 19.4(1.7 65.3(5.1 | 21.6(3.3 134.0(23.8 | 16.7(2.1 106.8(14.3
FICO          | 11.6(4.2 28.2(5.8 | 11.7(1.4 20.3(3.5 | 3.9(0.6 12.7(2.2 | 18.2(1.2 64.9(3.6 | 16.0(5.5 118.6(39.3 | 16.0(5.5 118.6(39.3
WDBC          | 5.9(0.7 10.7(0.9 | 3.1(0.9 5.2(1.5 | 6.3(1.4 18.2(6.4 | 4.9(0.3 7.2(0.6 | 8.0(1.1 27.7(3.0 | 5.0(1.1 10.6(3.0
gas           | 10.9(0.8 27.1(1.8 | 42.9(3.6 85.4(7.3 | 7.3(1.2 25.2(4.4 | 27.9(2.1 71.3(5.8 | 13.1(1.0 74.2(4.2 | 24.2(1.8 106.8(11.6
magic         | 33.0(2.8 90.0(8.0 | 27.9(1.9 51.2(3.4 | 6.7(0.5 21.1(1.8 | 72.0(2.5 226.0(0.9 | 19.1(6.6 136.1(49.2 | 52.3(10.6 391.3(75.0
adult         | 10.6(2.2 45.0(6.0 | 39.0(2.9 73.5(6.3 | 4.4(0.7 14.7(3.1 | 98.4(3.0 368.3(8.7 | 9.1(3.1 83.4(30.7 | 42.7(15.2 337.0(128.9
COMPAS-binary | 7.7(1.6 14.6(3.3 | 7.8(0.9 12.7(1.3 | 3.3(0.5 12.3(2.2 | 11.7(0.8 22.6(1.9 | 11.4(1.3 42.2(6.3 | 12.0(1.7 48.1(8.8
iris          | 3.0(0.0 3.0(0.0 | 3.0(0.0 4.0(0.0 | 3.0(0.0 3.0(0.0 | 3.1(0.3 4.8(1.2
cmc           | 6.2(1.5 6.5(1.5 | 3.9(0.9 6.6(1.5 | 6.4(1.1 11.5(1.9 | 3.9(0.9 10.7(3.2
cardio        | 8.9(1.2 19.1(3.0 | 9.7(1.1 18.7(2.2 | 13.6(0.9 39.1(3.6 | 14.9(3.0 55.5(12.6
page-blocks   | 9.0(0.89 18.3(1.27 | 11.0(0.8 21.7(1.7 | 19.5(1.2 56.6(4.3 | 16.6(2.2 60.2(7.5
dry-bean      | 16.8(1.2 46.5(3.1 | 27.2(1.4 54.3(2.9 | 42.1(3.1 115.0(10.5 | 51.6(6.2 223.2(31.6
pendigits     | 33.5(1.36 126.3(4.28 | 35.8(2.1 71.5(4.3 | 56.1(3.9 187.9(10.7 | 82.1(2.3 333.9(15.3
""")
"""Tables 6 and 7: rules, literals."""

PENALTIES = (0.5, 1.0, 5.0, 7.0, 10.0)
MOST_RULES = (10, 20, 30, 40)
"""The grid of Section 6.1."""

WDBC_SECONDS = {100: 4.0, 540: 20.0}
"""Fig. 4b, read from the figure's axes: about 4 seconds with 100 features, 20 with all."""

TABLE_8 = (
    "IF juvenile-crimes != 0 AND juvenile-misdemeanors = 0 THEN 1",
    "ELSE IF age > 26 AND priors: 2-3 THEN 0",
    "ELSE IF age < 21 AND sex: not Female THEN 1",
    "ELSE IF priors != 0 AND priors != 1 THEN 1",
    "ELSE 0",
)
TABLE_9 = (
    "IF petal length <= 2.63 THEN Iris-setosa",
    "ELSE IF petal length <= 4.9 AND petal width <= 1.6 THEN Iris-versicolor",
    "ELSE Iris-virginica",
)
