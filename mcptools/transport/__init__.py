"""Getting messages in and out of the process, and calls off the event loop.

Start with `stdio_lines` and `message_checks`, which answer lines that the SDK would leave unanswered; then
`loopback_socket` and `worker_thread`. Nothing here may know the tools, their answers or the store.
"""
