"""The filter of system calls that a container gets: podman's own, and no new namespaces."""

from longwatch.sandbox.container_program import limits, stricter

ALLOW, ERRNO = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"


def rules_for(filter_, name):
    return [rule for rule in filter_["syscalls"] if name in rule["names"]]


def test_new_namespaces_are_taken_out_of_whatever_allows_them():
    given = {
        "defaultAction": ERRNO,
        "defaultErrnoRet": 38,
        "syscalls": [
            {"names": ["read", "clone", "clone3", "unshare"], "action": ALLOW},
            {"names": ["setns"], "action": ALLOW, "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        ],
    }
    made = stricter(given)
    assert made["defaultAction"] == ERRNO
    assert rules_for(made, "read")[0]["action"] == ALLOW
    assert rules_for(made, "unshare") == rules_for(made, "setns") == []
    (clone,) = rules_for(made, "clone")
    assert (clone["args"][0]["value"], clone["args"][0]["valueTwo"]) == (0x7E020000, 0)
    (clone3,) = rules_for(made, "clone3")
    assert (clone3["action"], clone3["errnoRet"]) == (ERRNO, 38)
    assert len(given["syscalls"]) == 2


def test_no_limit_is_higher_than_our_own():
    named = dict(limit.split("=") for limit in limits())
    assert named["core"] == "0:0"
    soft, hard = map(int, named["nproc"].split(":"))
    assert 0 < soft == hard <= 16384
