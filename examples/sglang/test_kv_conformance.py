from conformance.suite import *  # noqa: F403
