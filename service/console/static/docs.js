// Draws the API's own description. Nothing is asked of any other host: no validator, no remote schemas.
SwaggerUIBundle({ url: "/openapi.json", dom_id: "#swagger", deepLinking: true, validatorUrl: null, docExpansion: "none" });
