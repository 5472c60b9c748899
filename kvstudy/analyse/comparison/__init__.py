"""How two things are compared, as pure functions of numbers: nothing here knows of runs, tables or files.

    intervals.py   a median over runs with its interval
    pairs.py       two sides of runs → a Pair: ratio, interval, p of a difference
    sameness.py    p of *the same within X %*: two one-sided tests
    power.py       which difference so many runs with this noise can find
    outcomes.py    invalid n of m on either side, and what that forbids to say of the rest
    families.py    the words of many pairs at once, corrected for how many they are
    words.py       the words there are, and what makes each of them

and of two sides that were loaded in turn (duets):

    launches.py    which slices of a launch count, and its ratio of each measure
    location.py    the typical launch: its ratio and interval although a few launches are odd
    looks.py       looking after every launch without a false word more for it
    lost.py        rounds and launches that a side lost, and what that forbids to say
    stopping.py    where a duet stands: words, intervals, what could have been found, how many launches are to
                   come
"""
