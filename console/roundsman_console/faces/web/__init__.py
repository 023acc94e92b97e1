"""The console in the browser: pages of one deployed stack, served on 127.0.0.1.

`server` opens the socket and runs the application, `access` decides which requests are allowed,
`application` has the routes. A module of `pages` reads what one page shows, from `inspector`, and
has a template of its name; `readings` has what several pages show. `forms` has the commands.
"""
