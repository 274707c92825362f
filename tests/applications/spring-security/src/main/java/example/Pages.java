package example;

import java.util.Map;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** What is shown of the person, in pages and at the interface. */
@RestController
class Pages {
    @GetMapping("/")
    Map<String, Object> inside(@AuthenticationPrincipal OidcUser person) {
        return Map.of(
                "name", person.getFullName(),
                "groups", person.getClaimAsStringList("groups"),
                "claims", person.getClaims());
    }

    @GetMapping("/token")
    String token(@RegisteredOAuth2AuthorizedClient("chancery") OAuth2AuthorizedClient client) {
        return client.getAccessToken().getTokenValue();
    }

    @GetMapping("/bye")
    String bye() {
        return "Bye";
    }

    @GetMapping("/api/me")
    Map<String, Object> me(@AuthenticationPrincipal Jwt token) {
        return Map.of("id", token.getSubject(), "claims", token.getClaims());
    }
}
