"""What is kept between requests is bounded by number and by bytes."""

from cli.web.kept import Kept


def test_of_many_values_those_stay_that_were_used_last() -> None:
    kept = Kept[int, str](3)
    for number in range(3):
        kept.put(number, str(number))
    assert kept.get(0) == "0"
    kept.put(3, "3")
    assert [kept.get(number) for number in range(4)] == ["0", None, "2", "3"]


def test_as_many_values_stay_as_the_bytes_hold_and_one_always_does() -> None:
    kept = Kept[int, bytes](100, 10, lambda _, content: len(content))
    for number in (1, 2, 3):
        kept.put(number, b"four")
    assert [kept.get(number) for number in (1, 2, 3)] == [None, b"four", b"four"]
    kept.put(2, b"123456")
    assert [kept.get(number) for number in (2, 3)] == [b"123456", b"four"]
    kept.put(2, b"1234567")
    assert [kept.get(number) for number in (2, 3)] == [b"1234567", None]
    kept.put(4, b"as long as can be")
    assert [kept.get(number) for number in (2, 4)] == [None, b"as long as can be"]
    kept.put(5, b"five")
    assert [kept.get(number) for number in (4, 5)] == [None, b"five"]
