package example;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.oauth2.client.oidc.web.logout.OidcClientInitiatedLogoutSuccessHandler;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;

/** The two halves, each as the reference of Spring Security sets it up. */
@Configuration
class Security {
    @Bean
    @Order(1)
    SecurityFilterChain resourceServer(HttpSecurity http) throws Exception {
        return http.securityMatcher("/api/**")
                .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
                .build();
    }

    /** Access tokens of the type at+jwt (RFC 9068), for this audience and of this client. */
    @Bean
    JwtDecoder accessTokens(
            @Value("${ISSUER}") String issuer, @Value("${CLIENT_ID}") String client) {
        var decoder = NimbusJwtDecoder.withIssuerLocation(issuer).validateType(false).build();
        decoder.setJwtValidator(JwtValidators.createAtJwtValidator()
                .issuer(issuer)
                .audience(client)
                .clientId(client)
                .build());
        return decoder;
    }

    @Bean
    @Order(2)
    SecurityFilterChain client(HttpSecurity http, ClientRegistrationRepository registrations) throws Exception {
        var leave = new OidcClientInitiatedLogoutSuccessHandler(registrations);
        leave.setPostLogoutRedirectUri("{baseUrl}/bye");
        return http.authorizeHttpRequests(
                        requests -> requests.requestMatchers("/bye").permitAll().anyRequest().authenticated())
                .oauth2Login(Customizer.withDefaults())
                .logout(logout -> logout.logoutSuccessHandler(leave))
                .build();
    }
}
