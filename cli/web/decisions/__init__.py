"""Decisions that a page asks for, and what it is answered.

Read `decision_requests` first (a decision is made only of what was shown), then `outcomes` (what the page is sent for
each outcome of the core) and `waiting_rejections` (rejections put off while an agent is at work). What may be decided
is for `objstore` to say, and nothing here knows a route.
"""
