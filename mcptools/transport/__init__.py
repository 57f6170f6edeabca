"""Transport of messages into and out of the process, and of calls from the event loop to threads.

Start with `stdio_lines` and `message_checks`, which answer lines that the SDK would leave unanswered; then
`loopback_socket` and `worker_thread`. Nothing here may know the tools, their answers or the store.
"""
