"""What the old code is known to do. It decides what is right."""

import unittest

from oldshop import all as old


class OldShop(unittest.TestCase):
    def test_money(self):
        self.assertEqual(old.m("12.50"), 1250)
        self.assertEqual(old.m("-0,05"), -5)

    def test_days_between(self):
        self.assertEqual(old.dd("2024-02-28", "2024-03-01"), 2)
        self.assertEqual(old.dd("2023-02-28", "2023-03-01"), 1)

    def test_slug(self):
        self.assertEqual(old.sl("  Hello, World! "), "hello-world")

    def test_total(self):
        self.assertEqual(old.tot(["# a comment", "pen;2;1.10", "ink;1;3,00"]), 520)

    def test_roman(self):
        self.assertEqual(old.rom(1994), "MCMXCIV")

    def test_opening_hours(self):
        self.assertEqual(old.mrg([(9, 12), (11, 14), (16, 18)]), [(9, 14), (16, 18)])
