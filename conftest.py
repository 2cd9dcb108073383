from reference_pools.declarations import kv_pools


def pytest_kv_pools():
    return kv_pools()
