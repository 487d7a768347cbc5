# One executable in a small image: built from source, run as a user of its own, with one volume.
FROM denoland/deno:2.6.10 AS build
WORKDIR /src
COPY . .
RUN deno task compile

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin string \
  && install -d -o string -g string -m 0711 /data
COPY --from=build /src/dist/string /usr/local/bin/string
USER string
VOLUME /data
EXPOSE 3923
ENV STRING_DATA=/data STRING_HOST=0.0.0.0
ENTRYPOINT ["/usr/local/bin/string"]
CMD ["serve"]
