{{ config(materialized='table') }}
select id, amount from {{ source('north', 'orders') }} where amount >= 20
