"""What actions and plugins stand on: extension points, session, statement, placement, eviction, explanations.

Neither asyncio nor HTTP nor a clock that was not handed in: a cycle is a function of cluster and policy.
"""
