//! Virtual users: send times, protocol clients, recorder. Judges nothing.
