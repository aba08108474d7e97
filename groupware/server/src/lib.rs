//! The HTTP front of the groupware: sign-in, limits, TLS, metrics, routes.
