"""Names of functions that the compiler made of templates."""

from __future__ import annotations

import pytest

from perfdiff.languages.c.templates import generic

# As c++filt writes symbols of gcc 12 and clang 14, without parameters of the function itself (`-p`).
NAMES = {
    "many<int>": "many",
    "set<int>::find<std::map<int, std::string> >": "set::find",
    "set<int>::In::g": "set::In::g",
    "set<int>::operator< <double>": "set::operator<",
    "set<int>::operator<<": "set::operator<<",
    "set<int>::operator>><int>": "set::operator>>",
    "set<int>::operator->": "set::operator->",
    "set<int>::operator()<int>": "set::operator()",
    "set<int>::operator std::vector<int, std::allocator<int> >": "set::operator std::vector",
    "operator<=> <int>": "operator<=>",
    "ch<(char)60>": "ch",
    "greater<(E)-1, (3)>(2)>": "greater",
    "type<decltype(a->b)>::k": "type::k",
    "(anonymous namespace)::many<int>": "(anonymous namespace)::many",
    "Abi::tag[abi:x]<int>": "Abi::tag",
    "call<main::{lambda()#1}>": "call",
    "many<int, 3>(int (&) [3]) const::{lambda(int)#1}::operator()": "many::{lambda#1}::operator()",
    "many<int": "many",
}
# What is no instance keeps its name, parameters of what it stands in among it.
OTHERS = [
    "main",
    "operator<",
    "list::operator->",
    "operator new",
    'operator"" _k',
    "main::{lambda(int)#1}::operator()",
    "main::$_0::operator()",
]


@pytest.mark.parametrize("name", NAMES)
def test_instances_are_called_as_their_template(name: str) -> None:
    assert generic(name) == NAMES[name]


@pytest.mark.parametrize("name", OTHERS)
def test_functions_that_are_no_instances_keep_their_names(name: str) -> None:
    assert generic(name) == name
