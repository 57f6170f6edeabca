"""The review in a window that clients draw: who may decide in it, and the window itself in a browser."""
