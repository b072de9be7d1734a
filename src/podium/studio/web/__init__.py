"""HTTP: routes, pages, access control, middleware, static files and templates."""
