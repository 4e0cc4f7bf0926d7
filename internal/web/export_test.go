package web

// Titles are the titles of problems by their code, for the test that compares them with openapi.json.
var Titles = titles
